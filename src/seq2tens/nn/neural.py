"""LS2T of learned features: a network maps every step, then an LS2T layer follows."""

from __future__ import annotations

import copy
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.context import Whole, takes_context
from seq2tens.nn.layers import LS2T, LS2TState


class NeuralLS2T(LS2T):
    """The paper's neural layer: a static map φ of every step, then LS2T. Both are trained.

    φ returns either vectors, and the lift is 1 + φ(x); or a list of the levels of a lift φ: V → T(V), as in
    `algebra.lifts`, each of which may be the output of a network. In the second case a step can be paired
    with as many vectors as there are levels, and the bias of the layer is the weight of a constant coordinate
    of level 1. The cost of several levels grows like 2^order. State, streams, masks and packed sequences
    work as in `LS2T`.

    Args:
        in_features: channels of the input.
        width: number of functionals.
        order: highest level.
        phi: a module that maps rows `(steps, in_features)` to vectors `(steps, features)`, or to a list of
            tensors `(steps, features)`, `(steps, features, features)`, … Each row is one step; masked steps
            are zeros. Modules that look at several steps go before the layer, in a `torch.nn.Sequential`.
        options: those of `LS2T`. With several levels the weights must be recursive, without `decay`.
    """

    def __init__(self, in_features: int, width: int, order: int, *, phi: nn.Module, **options: Any) -> None:
        check.positive_int("in_features", in_features)
        check.positive_int("order", order)
        _check_module(phi)
        levels = _try_out(phi, in_features)
        longest = min(len(levels), order)
        if longest > 1:
            _check_options(longest, options)
        super().__init__(levels[0].shape[1], width, order, **options)
        self.phi, self.in_features = phi, in_features
        self.features, self.longest = levels[0].shape[1], longest
        if longest > 1:
            self.lift_order = longest  # vectors per step; the recursion itself has the lift 1 + x

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"] | PackedSequence,
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: check.Lengths | None = None,
        state: LS2TState | None = None,
        return_state: bool = False,
        *,
        context: Whole | None = None,
    ) -> Tensor | PackedSequence | tuple[Tensor | PackedSequence, LS2TState]:
        """Apply φ, then the layer; the arguments are those of `LS2T`."""
        if isinstance(x, PackedSequence):
            lifted: Tensor | PackedSequence = x._replace(data=self._lifted(x.data))
            return super().forward(lifted, mask, lengths, state, return_state)
        check.sequences("x", x)
        mask = context.mask if context is not None else check.step_mask(x, mask, lengths)
        if mask is not None:  # φ may return NaN, or have no derivative, for the values at masked steps
            x = torch.where(mask[..., None], x, 0.0)
        lifted = self._lifted(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        if context is not None:
            return super().forward(lifted, context=context)
        return super().forward(lifted, mask, None, state, return_state)

    def functionals(self) -> dict[str, Any]:
        """Return the arguments for `functional.ls2t`, which gets the levels of φ side by side."""
        functionals = super().functionals()
        if self.longest == 1:
            return functionals
        weight, bias = F.cut_into_runs(self.weight, self.bias, self.longest)
        return functionals | {"weight": weight, "bias": bias, "lift_order": 1}

    def extra_repr(self) -> str:
        """Return that of `LS2T`, and the number of features of φ."""
        return f"{super().extra_repr()}, features={self.features}"

    def _lifted(self, rows: Float[Tensor, "steps in_features"]) -> Float[Tensor, "steps sizes"]:
        expected = self.in_features
        rule = f"`x` must have {expected} channels (in_features)"
        check.require(rows.shape[1] == expected, f"{rule}, got {rows.shape[1]}")
        levels = _levels_of(self.phi, rows, self.features)[: self.longest]
        return levels[0] if len(levels) == 1 else torch.cat([level.flatten(1) for level in levels], dim=1)

    def _output(self, levels: Tensor, count: Tensor | None) -> Tensor:
        return super()._output(levels if self.longest == 1 else F.sum_runs(levels, self.longest), count)


def _levels_of(phi: nn.Module, rows: Tensor, features: int | None = None) -> list[Tensor]:
    """Return the levels of φ, after checking their shapes."""
    result = phi(rows)
    levels = [result] if isinstance(result, Tensor) else list(result)
    check.require(len(levels) > 0, "`phi` must return vectors or at least one level, got an empty list")
    check.floating("phi(x)", levels[0])
    if features is None:
        features = levels[0].shape[-1] if levels[0].dim() > 1 else 0
    for j, level in enumerate(levels, 1):
        name = "phi(x)" if isinstance(result, Tensor) else f"phi(x)[{j - 1}]"
        check.shape(name, level, (len(rows), *(features,) * j), f"(steps, {j} axes of one size)")
    return levels


@torch.no_grad()
def _try_out(phi: nn.Module, in_features: int) -> list[Tensor]:
    """Return the levels of φ for one step, from a copy, because the call may change the module."""
    like = next(phi.parameters(), torch.empty(0))
    row = torch.zeros(1, in_features, dtype=like.dtype, device=like.device)
    return _levels_of(copy.deepcopy(phi).eval(), row)


def _check_module(phi: nn.Module) -> None:
    if not isinstance(phi, nn.Module):
        raise TypeError(f"`phi` must be a torch.nn.Module, got {type(phi).__name__}")
    for part in phi.modules():
        check.require(
            not takes_context(part),
            "`phi` must treat every step independently (a module that looks at several steps goes before an "
            f"LS2T layer in a torch.nn.Sequential), got {type(part).__name__}",
        )


def _check_options(longest: int, options: dict[str, Any]) -> None:
    plain = {"weights": "recursive", "lift_order": 1, "learn_lift": False, "decay": None}
    for name, value in plain.items():
        option = options.get(name, value)
        check.require(
            isinstance(option, type(value)) and option == value,
            f"`{name}` must be {value!r} for a `phi` of {longest} levels, got {option!r}",
        )
