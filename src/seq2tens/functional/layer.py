"""The LS2T layer as a function: checks and defaults, then one call of the operation."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens import ops
from seq2tens.ops.ls2t import Functionals

Weights = Literal["recursive", "independent", "symmetric"]
WEIGHTS = get_args(Weights)


def ls2t(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "components in_features width"],
    bias: Float[Tensor, "components width"] | None = None,
    *,
    order: int,
    weights: Weights = "recursive",
    lift_order: int = 1,
    lift_coefficients: Float[Tensor, " lift_order"] | None = None,
    decay: Float[Tensor, " width"] | None = None,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    reverse: bool = False,
    return_sequences: bool = True,
    state: Float[Tensor, "batch states width"] | None = None,
    return_state: bool = False,
    backend: ops.Backend | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Evaluate `width` low-rank functionals of the Seq2Tens map without forming it.

    Level m at step i is ⟨z_1 ⊗ … ⊗ z_m, Φ_m(x_1, …, x_i)⟩: the sum over all i_1 < … < i_m ≤ i of the products
    ⟨z_1, x_(i_1)⟩ ··· ⟨z_m, x_(i_m)⟩.

    Args:
        x: the sequences. A NaN or infinity only affects later steps of its own sequence.
        weight: the vectors z. Recursive weights share z_1, …, z_order among the levels; independent weights
            hold 1 + 2 + … + order vectors, those of level 1 first; symmetric weights hold one, z_1 = … =
            z_order. z_1 is paired with the earliest step.
        bias: added to each inner product ⟨z, x_i⟩.
        order: the highest level.
        weights: `"recursive"`, `"independent"` or `"symmetric"`.
        lift_order: how many vectors can be paired with one step (1: the paper; `order`: signatures).
        lift_coefficients: weight of a step that is paired with j vectors, default 1/j!.
        decay: forgetting factor per step, a number in (0, 1] for each functional.
        mask: True for valid steps. A masked step changes nothing, and its output repeats the previous one.
        lengths: number of steps of each sequence; 0 is an empty sequence, all levels 0.
        reverse: return the functionals of (x_i, …, x_L) instead of (x_1, …, x_i); z_1 is still paired with
            the earliest step.
        return_sequences: return all steps, or only the value for the whole sequence.
        state: the state returned by an earlier call (with `reverse`, by the call on the steps that follow).
        return_state: return the pair (output, state).
        backend: the implementation to run; None or `"auto"` chooses the fastest that can.

    Returns:
        `(batch, time, order, width)`, or `(batch, order, width)` without `return_sequences`. Half precision
        is returned as float32, because higher levels would overflow.
    """
    description = Description(
        weight, bias, order, weights, lift_order, lift_coefficients, decay, reverse, backend
    )
    functionals = description.functionals(x)
    check.not_empty("x", x)
    if state is not None:
        check.floating("state", state)
        check.shape(
            "state",
            state,
            (x.shape[0], len(functionals.chains.component), weight.shape[-1]),
            f"(batch, states of order {order}, width)",
        )
    output, final = functionals.run(x, check.step_mask(x, mask, lengths), state, return_sequences)
    return (output, final) if return_state else output


class Description(NamedTuple):
    """The arguments that functions of sequences and functionals share, see `ls2t`."""

    weight: Tensor
    bias: Tensor | None
    order: int
    weights: Weights = "recursive"
    lift_order: int = 1
    lift_coefficients: Tensor | None = None
    decay: Tensor | None = None
    reverse: bool = False
    backend: ops.Backend | None = None

    def functionals(self, x: Tensor) -> Functionals:
        """Check the arguments and return the functionals of sequences like `x`, which may have no steps."""
        weight, bias, order, weights, lift_order, lift_coefficients, decay, reverse, backend = self
        check.positive_int("order", order)
        check.positive_int("lift_order", lift_order)
        check.choice("weights", weights, WEIGHTS)
        check.sequences("x", x)
        chains = ops.make_chains(order, weights, reverse)
        _check_parameters(x, weight, bias, chains.components, f"{weights} weights of order {order}")
        _check_vector("lift_coefficients", lift_coefficients, lift_order, "(lift_order,)")
        _check_vector("decay", decay, weight.shape[-1], "(width,)")
        _check_decay(decay)
        if lift_coefficients is None and lift_order > 1:
            lift_coefficients = _inverse_factorials(lift_order, x)
        return Functionals(weight, bias, lift_coefficients, decay, chains, reverse, backend)


def normalize_levels(
    y: Float[Tensor, "*steps order width"],
    exponent: Float[Tensor, " order"] | float,
    count: Tensor,
) -> Float[Tensor, "*steps order width"]:
    """Divide level m by C(count, m)^exponent_m, a power of its number of terms after `count` steps.

    If there are fewer than m steps the divisor is 1, so short sequences give no NaN.
    """
    log_terms = []
    total = torch.zeros_like(count, dtype=y.dtype)
    for m in range(1, y.shape[-2] + 1):
        ratio = (count.to(y.dtype) - (m - 1)) / m
        total = total + ratio.clamp(min=1.0 / m).log()
        log_terms.append(torch.where(count >= m, total, 0.0))
    divisor = (exponent * torch.stack(log_terms, dim=-1)).exp()
    return y / divisor[..., None]


def _inverse_factorials(lift_order: int, like: Tensor) -> Tensor:
    return like.new_tensor(
        [1.0 / math.factorial(j) for j in range(1, lift_order + 1)], dtype=ops.accumulation_dtype(like)
    )


def _check_parameters(x: Tensor, weight: Tensor, bias: Tensor | None, components: int, kind: str) -> None:
    check.floating("weight", weight)
    if weight.dim() != 3:
        raise check.ArgumentError(
            f"`weight` must have 3 axes (components, in_features, width), got shape {tuple(weight.shape)}"
        )
    if weight.shape[0] != components:
        raise check.ArgumentError(
            f"`weight` must have {components} components for {kind}, got {weight.shape[0]}"
        )
    if weight.shape[2] == 0:
        raise check.ArgumentError(
            f"`weight` must have a width of at least 1, got shape {tuple(weight.shape)}"
        )
    if x.shape[-1] != weight.shape[1]:
        raise check.ArgumentError(
            f"`x` must have {weight.shape[1]} channels (the in_features of `weight`), got {x.shape[-1]}"
        )
    if bias is not None:
        check.floating("bias", bias)
        check.shape("bias", bias, (components, weight.shape[2]), "(components, width)")


def _check_vector(name: str, vector: Tensor | None, size: int, meaning: str) -> None:
    if vector is not None:
        check.floating(name, vector)
        check.shape(name, vector, (size,), meaning)


def _check_decay(decay: Tensor | None) -> None:
    if decay is None or check.values_hidden(decay):
        return
    invalid = ~((decay > 0) & (decay <= 1))
    if bool(invalid.any()):
        index = int(invalid.nonzero()[0])
        raise check.ArgumentError(f"`decay` must lie in (0, 1], got {float(decay[index])} at index {index}")
