"""The context of unfinished sequences: steps arrive in pushes, and a state is carried from push to push.

A convolution looks ahead, so its outputs at the last positions depend on where the sequence ends, because
zeros follow. A push requests outputs for several possible ends, `stride` steps apart. For every end there is
a window of the last positions before it, of the same size in every layer of a network: `stride` positions
that have become final since the previous end, and `ahead` more, as far as the network looks ahead, that are
provisional and only hold for this end. Positions before the first step are not valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.context import Whole, difference_by_halo

if TYPE_CHECKING:
    from seq2tens.nn.layers import LS2T
    from seq2tens.nn.masked import MaskedConv

Windows = Float[Tensor, "rows positions channels"]  # a row for each end of each sequence


class Push(NamedTuple):
    """The ends of a push: `ends` of them, `stride` steps apart, the first `stride` steps after `start`."""

    batch: int
    start: int
    stride: int
    ends: int
    ahead: int
    per_position: bool  # whether every position is an output; nothing is provisional then

    def positions(self, device: torch.device) -> Int[Tensor, "rows positions"]:
        """Return the positions of every window; they are negative before the first step."""
        size = self.stride + self.ahead
        first = torch.arange(1, self.ends + 1, device=device) * self.stride + (self.start - size)
        return (first[:, None] + torch.arange(size, device=device)).repeat(self.batch, 1)


class Live(Whole):
    """The context of one push; `states` are those that earlier pushes left, in the order of the calls."""

    def __init__(
        self,
        push: Push,
        states: tuple[Tensor, ...],
        device: torch.device,
        *,
        length: int | None = None,
        constants: dict[nn.Module, Any] | None = None,
    ) -> None:
        mask = None if push.start >= push.ahead else push.positions(device) >= 0
        super().__init__(mask, constants)
        self.push, self.length = push, length
        self.before, self.after = states, list[Tensor]()

    def enter(self, x: Float[Tensor, "batch steps channels"]) -> Windows:
        """Return the windows for new steps."""
        push = self.push
        if push.ahead == 0:
            return x
        series = torch.cat([self._previous(x, push.ahead), x], dim=1)
        self._store(series[:, series.shape[1] - push.ahead :], series)
        return self._windows(series, push.stride + push.ahead)

    def halo(self, x: Windows, before: int, after: int) -> Windows:
        """Prepend final positions; append zeros, because the sequence would end here."""
        push, x = self.push, self.clear(x)
        beyond = [x.new_zeros(x.shape[0], after, x.shape[2])] if after else []
        if before == 0:
            return torch.cat([x, *beyond], dim=1) if beyond else x
        earlier = self._previous(x, before)
        if push.ends == 1:
            extended = torch.cat([earlier, x, *beyond], dim=1)
            self._store(extended[:, push.stride : push.stride + before], extended)
            return extended
        series = torch.cat([earlier, self._final(x)], dim=1)
        self._store(series[:, series.shape[1] - before :], series)
        return torch.cat([self._windows(series, before), x, *beyond], dim=1)

    difference = difference_by_halo

    def clock(self, x: Windows, mode: Literal["index", "centred"]) -> Float[Tensor, "rows positions 1"]:
        """Return the relative time in a sequence of `length` steps."""
        assert self.length is not None
        index = self.count(x).to(x.dtype)
        return self.clear(F.clock(index, index.new_full((1, 1), self.length), mode)[..., None])

    def mean(self, x: Windows) -> Float[Tensor, "outputs channels"]:
        """Return the mean over all steps so far."""
        self.reductions += 1
        push, x = self.push, self.clear(x)
        final = x if push.per_position else x[:, : push.stride].sum(1).view(push.batch, push.ends, -1)
        sums = final.cumsum(1) if final.shape[1] > 1 else final
        sums = sums + self._previous(sums, 1)
        self._store(sums[:, -1:], sums)
        if push.per_position:
            return sums.flatten(0, 1) / self.count(x, at_end=True)[:, None]
        totals = sums.flatten(0, 1) + x[:, push.stride :].sum(1)
        if push.ends == 1:
            return totals / (push.start + push.stride)
        return totals / self.count(x, at_end=True)[:, None]

    def ls2t(self, layer: LS2T, x: Windows) -> Float[Tensor, "rows *positions order width"]:
        """Continue the recursion from the end of the previous push."""
        push = self.push
        self.reductions += not layer.return_sequences
        if push.ahead == 0 and not push.per_position and not layer.return_sequences:
            return self._end(layer, x)
        states = self._states(layer, x)
        output = F.make_chains(layer.order, layer.weights, False).output
        levels = states if len(output) == states.shape[2] else states[:, :, list(output)]
        if layer.return_sequences:
            return levels
        return levels.flatten(0, 1) if push.per_position else levels[:, -1]

    def count(self, x: Windows, *, reverse: bool = False, at_end: bool = False) -> Int[Tensor, "rows ..."]:
        """Count the steps up to each position, or up to every output with `at_end`."""
        count = self.push.positions(x.device) + 1
        if at_end:
            return count.flatten() if self.push.per_position else count[:, -1]
        return count

    def convolve(
        self, convolution: MaskedConv, x: Windows, before: int, after: int, train_bias: bool = True
    ) -> Windows:
        """Convolve the steps with as many neighbours before and after them, see `halo`."""
        if self.constants is not None:
            return super().convolve(convolution, x, before, after, train_bias)
        extended = self.halo(x, before, after)
        return F.convolve(extended, convolution.weight, convolution.bias, train_bias=train_bias)

    def dropout(self, x: Tensor, rate: float, training: bool) -> Tensor:
        """Return `x`; in training raise an error, because later pushes would not know what was dropped."""
        if training and rate > 0:
            raise check.ArgumentError(
                "`module` must be in evaluation mode or without dropout, which drops channels of whole "
                f"sequences, got a rate of {rate}"
            )
        return x

    def _end(self, layer: LS2T, x: Tensor) -> Tensor:
        state = self._state()
        levels, state = F.ls2t(
            x, **layer.functionals(), mask=self.mask, return_sequences=False, state=state, return_state=True
        )
        self.after.append(state)
        return levels

    def _states(self, layer: LS2T, x: Windows) -> Float[Tensor, "rows positions states width"]:
        """Return states along the final positions and, for each end, on along its provisional ones."""
        push, state = self.push, self._state()
        if push.ends == 1:
            states = self._run(layer, x, self.mask, state)
            end_state = states[:, push.stride - 1] if push.stride else state
            assert end_state is not None
            self.after.append(owned(end_state, states))
            return states
        mask = None if self.mask is None else self._final(self.mask)
        series = self._run(layer, self._final(x), mask, state)
        self.after.append(owned(series[:, -1], series))
        final = series.reshape(x.shape[0], push.stride, *series.shape[2:])
        if push.ahead == 0:
            return final
        rest = None if self.mask is None else self.mask[:, push.stride :]
        return torch.cat([final, self._run(layer, x[:, push.stride :], rest, final[:, -1])], dim=1)

    def _run(self, layer: LS2T, x: Tensor, mask: Tensor | None, state: Tensor | None) -> Tensor:
        if self.constants is None:
            return F.ls2t_states(x, **layer.functionals(), mask=mask, state=state)
        if layer not in self.constants:
            self.constants[layer] = F.state_functionals(x, **layer.functionals()).prepare(x)
        states, _ = self.constants[layer](x, mask, state)
        return states

    def _final(self, x: Tensor) -> Float[Tensor, "batch steps ..."]:
        """Return the positions that have become final, end after end."""
        push = self.push
        return x[:, : push.stride].reshape(push.batch, push.ends * push.stride, *x.shape[2:])

    def _windows(self, series: Float[Tensor, "batch time channels"], size: int) -> Windows:
        """Return windows of `size` positions that begin `stride` steps apart."""
        push = self.push
        if push.ends == 1:
            return series
        windows = series.unfold(1, size, push.stride)[:, : push.ends].mT
        return windows.reshape(push.batch * push.ends, size, series.shape[2])

    def _previous(self, like: Tensor, steps: int) -> Tensor:
        """Return the state of the operation that is being called; zeros before the first step."""
        state = self._state()
        return like.new_zeros(self.push.batch, steps, like.shape[2]) if state is None else state

    def _state(self) -> Tensor | None:
        return self.before[len(self.after)] if self.before else None

    def _store(self, part: Tensor, whole: Tensor) -> None:
        self.after.append(owned(part, whole))


def owned(part: Tensor, whole: Tensor) -> Tensor:
    """Return a part that can be kept: a copy if a view would keep a much larger whole alive."""
    return part if 16 * part.numel() >= whole.numel() else part.clone()
