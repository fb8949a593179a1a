"""The functionals of arbitrary intervals of a sequence, from tables that are filled in one pass."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens import ops
from seq2tens.functional.layer import Description, Weights
from seq2tens.ops.intervals import Tables

Positions = Int[Tensor, " intervals"] | Int[Tensor, "batch intervals"]


class PrefixLS2T:
    """Evaluate the functionals of `ls2t` on any interval of the sequences.

    Time is cut into blocks of 32 steps. The tables hold the values of every prefix and every suffix of a
    block and, for each power of two, of the stretch of blocks from each block to a multiple of that power. An
    interval is then the suffix of a block, two stretches of whole blocks and the prefix of a block. Joining
    their values takes three products of a row vector with a triangular matrix, O(order²) operations for each
    functional, however long the interval. An interval within one block is computed from its steps.

    Nothing is subtracted or divided, so steps outside of an interval do not influence the error of its value.
    With unit roundoff u, n steps, d channels, lift order p and m = order, the error of a level is at most N·u
    times the same level of |x| under |weight| and |bias|, to first order in u, where
    N = m · (32 p + (m + 1)(⌈log2(n / 32)⌉ + 3) + d + 3). A term of a level is a product of values of at most
    m blocks. Each of these undergoes 32 p additions in its block and m + 1 roundings in each join. The m
    factors of a term undergo d + 3 roundings each, in inner products and in products of these.

    For `time` steps the tables hold about time · (order + order (order + 1) / 2) numbers for each functional
    with recursive weights. Gradients flow to `x`, `weight`, `bias` and `lift_coefficients`.

    Args:
        x: the sequences.
        mask: True for valid steps; positions of intervals count all steps.

    The other arguments are those of `ls2t`. There is no `decay`.
    """

    def __init__(
        self,
        x: Float[Tensor, "batch time in_features"],
        weight: Float[Tensor, "components in_features width"],
        bias: Float[Tensor, "components width"] | None = None,
        *,
        order: int,
        weights: Weights = "recursive",
        lift_order: int = 1,
        lift_coefficients: Float[Tensor, " lift_order"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
        backend: ops.Backend | None = None,
    ) -> None:
        description = Description(
            weight, bias, order, weights, lift_order, lift_coefficients, backend=backend
        )
        functionals = description.functionals(x)
        check.not_empty("x", x)
        self._shape = tuple(x.shape)
        self._tables = Tables(functionals, x, check.step_mask(x, mask, lengths))

    def __call__(
        self,
        start: Positions,
        stop: Positions,
        sequence: Int[Tensor, " intervals"] | None = None,
    ) -> Tensor:
        """Return the levels of x[:, start:stop], for each pair of `start` and `stop`.

        Args:
            start: first step of each interval, `(intervals,)`, or `(batch, intervals)` to differ by sequence.
            stop: the step after the last one, at least `start`; an interval is empty if both are equal.
            sequence: index of the sequence of each interval; by default every interval of every sequence.

        Returns:
            `(batch, intervals, order, width)`, or `(intervals, order, width)` with `sequence`.
        """
        self._check_positions(start, stop)
        if sequence is not None:
            self._check_sequence(sequence, start)
            return self._tables.levels(start.long(), stop.long(), sequence.long())
        batch, count = self._shape[0], start.shape[-1]
        start, stop = (t.long().expand(batch, count).reshape(-1) for t in (start, stop))
        owner = torch.arange(batch, device=start.device).repeat_interleave(count)
        return self._tables.levels(start, stop, owner).unflatten(0, (batch, count))

    def _check_positions(self, start: Tensor, stop: Tensor) -> None:
        batch, time, _ = self._shape
        for name, value in (("start", start), ("stop", stop)):
            _check_integers(name, value)
            fits = value.dim() == 1 or (value.dim() == 2 and value.shape[0] == batch)
            rule = f"(intervals,) or (batch, intervals) with a batch of {batch}"
            check.require(fits, f"`{name}` must have shape {rule}, got {tuple(value.shape)}")
        check.shape("stop", stop, tuple(start.shape), "that of `start`")
        _check_range("stop", stop, time, "the time axis of `x`")
        _check_range("start", start, stop, "`stop`")

    def _check_sequence(self, sequence: Tensor, start: Tensor) -> None:
        _check_integers("sequence", sequence)
        check.require(start.dim() == 1, f"`start` must have one axis with `sequence`, got {start.dim()}")
        check.shape("sequence", sequence, tuple(start.shape), "(intervals,)")
        _check_range("sequence", sequence, self._shape[0] - 1, "the batch axis of `x`")


def _check_integers(name: str, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"`{name}` must be a torch.Tensor, got {type(value).__name__}")
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"`{name}` must be integers, got {value.dtype}")


def _check_range(name: str, value: Tensor, high: int | Tensor, meaning: str) -> None:
    """Require values from 0 to `high`; the error reports the first that is not."""
    invalid = ((value < 0) | (value > high)).flatten()
    if bool(invalid.any()):
        index = int(invalid.nonzero()[0])
        bound = high if isinstance(high, int) else int(high.flatten()[index])
        raise check.ArgumentError(
            f"`{name}` must lie in 0..{bound} ({meaning}), got {int(value.flatten()[index])} at index {index}"
        )
