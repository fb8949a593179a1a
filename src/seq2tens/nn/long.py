"""Training on sequences that do not fit in memory: chunks of steps, one at a time, with a carried state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.context import call_in_context, takes_context
from seq2tens.nn.layers import LS2T, LS2TState
from seq2tens.nn.masked import MaskedBatchNorm
from seq2tens.nn.streaming.live import Live, Push
from seq2tens.nn.streaming.probe import Reach, Refusals, find_reach

State = Any  # tensors in tuples, lists and dictionaries
Step = Callable[[Any, State], tuple[Any, State]]
_TRIM = 8  # chunks after which the heap is trimmed
REFUSALS = Refusals(
    clock="`module` must not embed time, which needs the length of the sequence, got time={mode!r}",
    future="`module` must only look back to run in chunks, got {name}",
)
_is_recomputing: ContextVar[bool] = ContextVar("is_recomputing", default=False)


class ChunkState(NamedTuple):
    """The state of a module after some steps: their number, and the states of its context's operations."""

    steps: int
    states: tuple[Tensor, ...]


def checkpoint_chunks(
    module: nn.Module | Step,
    chunks: Sequence[Any] | Iterable[Any],
    *,
    state: State = None,
    truncate: int | None = None,
) -> tuple[list[Any], State]:
    """Run a module over consecutive chunks of a sequence, with gradient checkpointing.

    Results and gradients equal those of one call on the whole sequence. The backward pass recomputes one
    chunk at a time from the states between chunks, instead of storing activations.

    Args:
        module: a layer or network of `seq2tens.nn`, or another module that takes a context, see `chunkwise`;
            or any module or function that takes a chunk and a state, None at first, and returns an output
            and the next state.
        chunks: tensors or arrays `(batch, steps, channels)`, or whatever the function takes. If `chunks` has
            a length and can be indexed, chunks are read again in the backward pass; otherwise they are kept.
            An `LS2T` with `reverse` takes the last chunk first.
        state: the initial state, as returned by an earlier call.
        truncate: stop gradients at the boundary after every `truncate` chunks. The default is the exact
            gradient.

    Returns:
        The outputs of all chunks, and the state after the last one. Without `return_sequences` the last
        output is that of the whole sequence. Outputs of every step stay in memory; a function may return the
        loss of a chunk instead.
    """
    if truncate is not None:
        check.positive_int("truncate", truncate)
    step = chunkwise(module) if isinstance(module, nn.Module) and _runs_in_contexts(module) else module
    outputs = []
    for index, load in enumerate(_loaders(chunks)):
        output, state = _run(step, load, state, trim=index % _TRIM == 0)
        outputs.append(output)
        if truncate is not None and (index + 1) % truncate == 0:
            state = tree_map_only(Tensor, Tensor.detach, state)
    check.require(len(outputs) > 0, "`chunks` must hold at least one chunk, got none")
    return outputs, state


def time_chunks(x: Tensor | np.ndarray, steps: int) -> Sequence[Tensor]:
    """Cut sequences `(batch, time, channels)` into chunks of `steps` steps; the last one may be shorter.

    The chunks of an array, which may be a memory map of a file, are read when they are indexed.
    """
    check.positive_int("steps", steps)
    check.require(x.ndim == 3, f"`x` must have 3 axes (batch, time, channels), got {x.ndim}")
    return x.split(steps, dim=1) if isinstance(x, Tensor) else _ArrayChunks(x, steps)


def chunkwise(module: nn.Module, *, norm: Literal["running", "chunk"] | None = None) -> Step:
    """Turn a layer or network of `seq2tens.nn` into a function (chunk, state) → (output, next state).

    `module` may also be any module whose `forward` takes a `context`, or a `torch.nn.Sequential` of such
    modules. If it returns sequences, the output is that of the steps of the chunk; otherwise it is that of
    all steps so far.

    In training, batch normalisation uses the statistics of whole sequences, which are not known in a chunk.
    Unless the module is in evaluation mode, `norm` must choose other statistics: `"running"` uses the running
    statistics and does not update them; `"chunk"` uses the statistics of each chunk and updates the running
    ones.
    """
    check.choice("norm", norm, ("running", "chunk", None))
    if isinstance(module, LS2T):  # it carries its own state, also with `reverse`
        return partial(_advance_layer, module)
    check.require(
        _runs_in_contexts(module),
        "`module` must be a layer or network of seq2tens.nn, or have a `forward` that takes a `context`, "
        f"got {type(module).__name__}",
    )
    norms = [part for part in module.modules() if isinstance(part, MaskedBatchNorm)]
    reaches: dict[int, Reach] = {}  # by number of channels

    def step(x: Tensor, state: ChunkState | None) -> tuple[Tensor, ChunkState]:
        if x.shape[2] not in reaches:
            reaches[x.shape[2]] = _reach(module, x.shape[2])
        _check_statistics(norms, norm)
        with _statistics(norms, norm):
            return _advance(module, x, state or ChunkState(0, ()), reaches[x.shape[2]].ahead)

    return step


def _runs_in_contexts(module: nn.Module) -> bool:
    return takes_context(module) or isinstance(module, nn.Sequential)


def _reach(module: nn.Module, channels: int) -> Reach:
    reach = find_reach(copy.deepcopy(module).eval(), REFUSALS, channels=channels)
    check.require(
        reach.ahead == 0 or not reach.gives_sequences,
        "`module` must only look back if it returns sequences, because otherwise its outputs at the end of a "
        f"chunk depend on the next one, got {type(module).__name__}, which looks {reach.ahead} steps ahead",
    )
    return reach


def _advance(module: nn.Module, x: Tensor, state: ChunkState, ahead: int) -> tuple[Tensor, ChunkState]:
    """Run one chunk, as a push with a single end."""
    batch, steps, _ = x.shape
    live = Live(
        Push(batch, state.steps, steps, ends=1, ahead=ahead, per_position=False), state.states, x.device
    )
    y = call_in_context(module, live.enter(x), live)
    return y, ChunkState(state.steps + steps, tuple(live.after))


class _ArrayChunks(Sequence[Tensor]):
    def __init__(self, array: np.ndarray, steps: int) -> None:
        self._array, self._steps = array, steps

    def __len__(self) -> int:
        return -(-self._array.shape[1] // self._steps)

    def __getitem__(self, index: Any) -> Any:
        begin = range(0, self._array.shape[1], self._steps)[index]
        return torch.from_numpy(np.array(self._array[:, begin : begin + self._steps]))


def _loaders(chunks: Any) -> Iterator[Callable[[], Any]]:
    """Yield, for each chunk, a function that loads it whenever it is called."""
    whole = isinstance(chunks, Tensor | np.ndarray)
    check.require(not whole, "`chunks` must be a sequence, got one tensor or array; see `time_chunks`")
    if hasattr(chunks, "__len__") and hasattr(chunks, "__getitem__"):
        for index in range(len(chunks)):
            yield partial(_load, chunks, index)
    else:
        for chunk in chunks:
            yield partial(_load, [chunk], 0)


def _load(chunks: Sequence[Any], index: int) -> Any:
    chunk = chunks[index]
    return torch.from_numpy(np.array(chunk)) if isinstance(chunk, np.ndarray) else chunk


def _run(step: Step, load: Callable[[], Any], state: State, trim: bool) -> tuple[Any, State]:
    """Run one chunk; with gradients enabled, only its results are kept and the rest is recomputed."""

    def run(state: State) -> tuple[Any, State]:
        if trim:
            F.trim_heap()
        result = step(load(), state)
        pair = isinstance(result, tuple) and len(result) == 2
        check.require(pair, f"`module` must return an output and a state, got {type(result).__name__}")
        return result

    if not torch.is_grad_enabled():
        return run(state)
    return checkpoint(run, state, use_reentrant=False, context_fn=lambda: (nullcontext(), _recomputing()))


@contextmanager
def _recomputing() -> Iterator[None]:
    token = _is_recomputing.set(True)
    try:
        yield
    finally:
        _is_recomputing.reset(token)


@contextmanager
def _statistics(norms: list[MaskedBatchNorm], norm: str | None) -> Iterator[None]:
    """Make normalisations use the chosen statistics; recomputing a chunk does not update running ones."""
    before = [(part.training, part.momentum) for part in norms]
    try:
        for part in norms:
            part.training = part.training and norm == "chunk"
            part.momentum = 0.0 if _is_recomputing.get() else part.momentum
        yield
    finally:
        for part, (training, momentum) in zip(norms, before, strict=True):
            part.training, part.momentum = training, momentum


def _check_statistics(norms: list[MaskedBatchNorm], norm: str | None) -> None:
    check.require(
        norm is not None or not any(part.training for part in norms),
        "`module` must be in evaluation mode, because statistics of a batch need whole sequences, got a "
        'normalisation in training mode; `chunkwise(module, norm="running")` and `norm="chunk"` train with '
        "other statistics",
    )


def _advance_layer(layer: LS2T, x: Tensor, state: LS2TState | None) -> tuple[Tensor, LS2TState]:
    output, after = layer(x, state=state, return_state=True)
    return output, after
