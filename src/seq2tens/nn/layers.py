"""LS2T and BiLS2T: the layers hold parameters, `seq2tens.functional` computes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.context import Streamable, Whole
from seq2tens.nn.initialize import initialize_
from seq2tens.nn.packed import repack, unpack

if TYPE_CHECKING:
    from seq2tens.nn.recurrent import RecurrentLS2T


class LS2TState(NamedTuple):
    """The state of a layer after some steps: the values of its chains, and the number of valid steps."""

    levels: Float[Tensor, "batch states width"]
    steps: Int[Tensor, " batch"]

    def detach(self) -> LS2TState:
        """Return the state detached from its history, for truncated backpropagation through time."""
        return self._replace(levels=self.levels.detach())


class LS2T(Streamable, nn.Module):
    """Low-rank functionals of the Seq2Tens map of a sequence, one value per level and functional.

    Input `(batch, time, in_features)`; output `(batch, time, order, width)`, or `(batch, order, width)`
    without `return_sequences`, each without the level axis if levels are summed. Also accepts a
    `PackedSequence`, and returns one with `return_sequences`.

    Args:
        in_features: channels of the input.
        width: number of functionals.
        order: highest level.
        weights: `"recursive"` (order · in_features · width parameters; level m extends level m - 1),
            `"independent"` (one chain of vectors per level) or `"symmetric"` (one vector per functional, used
            at all positions: without `decay` the layer ignores the order of the steps).
        lift_order: how many vectors can be paired with one step; 1 is the paper's map, `order` gives
            signatures.
        learn_lift: learn the coefficients of the lift, initially 1/2!, 1/3!, … (the first is fixed at 1).
        decay: forgetting factor per step: a number in (0, 1], one number per functional, or `"learn"`.
        bias: add a learned constant to each inner product, which acts like a time coordinate.
        reverse: at step i, return functionals of the steps from i on, instead of those up to i.
        return_sequences: return all steps, or only the value for the whole sequence.
        normalize: divide level m by a power of its number of terms. The exponent is this number in (0, 1] or,
            with True, learned (initially 1/2).
        sum_levels: return ⟨ℓ, Φ⟩, the sum of all levels from 1 on, instead of the separate levels.
        init: `"uniform"` or `"normal"`.
        backend: see `seq2tens.functional.ls2t`.
    """

    lift: Tensor | None
    decay: Tensor | None
    decay_logit: nn.Parameter | None
    exponent_logit: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        width: int,
        order: int,
        *,
        weights: F.Weights = "recursive",
        lift_order: int = 1,
        learn_lift: bool = False,
        decay: float | Sequence[float] | Tensor | Literal["learn"] | None = None,
        bias: bool = True,
        reverse: bool = False,
        return_sequences: bool = True,
        normalize: bool | float = False,
        sum_levels: bool = False,
        init: Literal["uniform", "normal"] = "uniform",
        backend: F.Backend | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in_features": in_features, "width": width, "order": order, "lift_order": lift_order}
        for name, size in sizes.items():
            check.positive_int(name, size)
        check.choice("weights", weights, get_args(F.Weights))
        check.choice("init", init, ("uniform", "normal"))
        check.require(
            lift_order > 1 or not learn_lift,
            "`learn_lift` must be False for lift_order 1 (its only coefficient is 1), got True",
        )
        self.in_features, self.width, self.order = in_features, width, order
        self.weights, self.lift_order, self.backend = weights, lift_order, backend
        self.reverse, self.return_sequences, self.init = reverse, return_sequences, init
        self.sum_levels = sum_levels
        components = F.make_chains(order, weights, reverse).components
        empty = partial(torch.empty, device=device, dtype=dtype)
        self.weight = nn.Parameter(empty(components, in_features, width))
        self.bias = nn.Parameter(empty(components, width)) if bias else None
        self.lift = nn.Parameter(empty(lift_order - 1)) if learn_lift else None
        self.exponent_logit = nn.Parameter(empty(order)) if normalize is True else None
        self.fixed_exponent = _fixed_exponent(normalize)
        self.decay_logit = nn.Parameter(empty(width)) if isinstance(decay, str) else None
        self.register_buffer("decay", _fixed_decay(decay, empty(width)))
        self.reset_parameters()

    @staticmethod
    def like_lstm(
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> RecurrentLS2T:
        """Return a drop-in replacement for a `torch.nn.LSTM` with these arguments, see `RecurrentLS2T`.

        Examples:
            >>> import torch
            >>> from seq2tens import LS2T
            >>> layers = LS2T.like_lstm(input_size=3, hidden_size=16, num_layers=2, batch_first=True)
            >>> output, state = layers(torch.randn(8, 50, 3))
            >>> output.shape, layers(torch.randn(8, 1, 3), state)[0].shape
            (torch.Size([8, 50, 16]), torch.Size([8, 1, 16]))
        """
        from seq2tens.nn.recurrent import RecurrentLS2T

        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        return RecurrentLS2T(*sizes, **options)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights, from `generator` or else from the global one."""
        initialize_(self.weight, self.order, self.weights, self.init, generator)
        if self.bias is not None:
            self.bias.zero_()
        if self.lift is not None:
            factors = 1.0 / torch.arange(2, self.lift_order + 1, dtype=torch.float64)
            self.lift.copy_(factors.cumprod(0))
        if self.exponent_logit is not None:
            self.exponent_logit.zero_()
        if self.decay_logit is not None:  # memories of 2 to 1000 steps, evenly spaced in the logarithm
            spans = torch.logspace(0.30103, 3.0, self.width, dtype=torch.float64)
            self.decay_logit.copy_(torch.logit(1 - 1 / spans))

    def extra_repr(self) -> str:
        """Return the sizes, `weights`, and some arguments that differ from their defaults."""
        text = f"{self.in_features}, {self.width}, {self.order}, weights={self.weights!r}"
        if self.lift_order > 1:
            text += f", lift_order={self.lift_order}"
        flags = [name for name in ("reverse", "sum_levels") if getattr(self, name)]
        return text + "".join(f", {name}=True" for name in flags)

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
        """Apply the layer; `state` continues an earlier call, `return_state` returns (output, state)."""
        if context is not None:
            return self._in_context(x, context)  # type: ignore[arg-type]
        packed = x if isinstance(x, PackedSequence) else None
        if packed is not None:
            x, lengths = unpack(packed, mask, lengths)
        levels, chains = F.ls2t(
            x,  # type: ignore[arg-type]
            **self.functionals(),
            mask=mask,
            lengths=lengths,  # type: ignore[arg-type]
            return_sequences=self.return_sequences,
            state=None if state is None else state.levels,
            return_state=True,
        )
        count = total = None
        if return_state or self.exponent is not None:
            count, total = self._counts(x, check.step_mask(x, mask, lengths), state)  # type: ignore[arg-type]
        output = self._output(levels, count)
        result = repack(output, packed) if packed is not None and self.return_sequences else output
        return (result, LS2TState(chains, total)) if return_state and total is not None else result

    def _counts(self, x: Tensor, mask: Tensor | None, state: LS2TState | None) -> tuple[Tensor, Tensor]:
        """Return the number of steps behind each output, if it normalises them, and of all steps so far."""
        whole, earlier = Whole(mask), 0 if state is None else state.steps
        total = whole.count(x, at_end=True) + earlier
        if self.exponent is None or not self.return_sequences:
            return total, total
        count = whole.count(x, reverse=self.reverse)
        return count if state is None else count + state.steps[:, None], total

    @property
    def exponent(self) -> Float[Tensor, " order"] | float | None:
        """Levels are divided by this power of their number of terms; one per level, or one for all."""
        return self.fixed_exponent if self.exponent_logit is None else self.exponent_logit.sigmoid()

    def functionals(self) -> dict[str, Any]:
        """Return the arguments that the layer passes to `functional.ls2t`."""
        return {
            "weight": self.weight,
            "bias": self.bias,
            "order": self.order,
            "weights": self.weights,
            "lift_order": self.lift_order,
            "lift_coefficients": None if self.lift is None else torch.cat([self.lift.new_ones(1), self.lift]),
            "decay": self.decay if self.decay_logit is None else self.decay_logit.sigmoid(),
            "reverse": self.reverse,
            "backend": self.backend,
        }

    def _in_context(self, x: Tensor, context: Whole) -> Tensor:
        levels, count = context.ls2t(self, x), None
        if self.exponent is not None:
            count = context.count(x, reverse=self.reverse, at_end=not self.return_sequences)
        return self._output(levels, count)

    def _output(self, levels: Tensor, count: Tensor | None) -> Tensor:
        """Return the output for these levels; `count`, the number of steps behind them, normalises them."""
        exponent = self.exponent
        if exponent is not None and count is not None:
            levels = F.normalize_levels(levels, exponent, count)
        return levels.sum(-2) if self.sum_levels else levels


class BiLS2T(nn.Module):
    """The paper's bidirectional layer: functionals of the past, then functionals of the future.

    At step i the first `width` coordinates of each level belong to (x_1, …, x_i), the last `width` to
    (x_i, …, x_L); output `(batch, time, order, 2 · width)`. The arguments are those of `LS2T`.
    """

    def __init__(self, in_features: int, width: int, order: int, **options: Any) -> None:
        super().__init__()
        check.require("reverse" not in options, "`reverse` must be left out: BiLS2T runs in both directions")
        self.past = LS2T(in_features, width, order, **options)
        self.future = LS2T(in_features, width, order, reverse=True, **options)

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"] | PackedSequence,
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: check.Lengths | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor | PackedSequence:
        """Apply both directions. There is no state: the future is not known in advance."""
        past, future = (layer(x, mask, lengths, context=context) for layer in (self.past, self.future))
        if isinstance(past, PackedSequence):
            return past._replace(data=torch.cat([past.data, future.data], dim=-1))
        return torch.cat([past, future], dim=-1)


def _fixed_exponent(normalize: object) -> float | None:
    """Return the given exponent; None if there is none or it is learned."""
    if isinstance(normalize, (int, float)) and 0 <= normalize <= 1:
        return float(normalize) if normalize and normalize is not True else None
    raise check.ArgumentError(f"`normalize` must be True, False or in (0, 1], got {normalize!r}")


def _fixed_decay(decay: object, like: Tensor) -> Tensor | None:
    """Return the given decay, one number per functional; None if there is none or it is learned."""
    if isinstance(decay, str):
        check.choice("decay", decay, ("learn",))
    if decay is None or isinstance(decay, str):
        return None
    fixed = torch.as_tensor(decay, dtype=like.dtype, device=like.device).expand_as(like).clone()
    inside = bool(((fixed > 0) & (fixed <= 1)).all())
    check.require(inside, f"`decay` must lie in (0, 1], got {decay!r}")
    return fixed
