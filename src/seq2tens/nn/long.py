"""Training on sequences longer than memory: chunks of steps with carried state, one in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

from seq2tens import _checks as check
from seq2tens.nn.blocks import DeepLS2T, LS2TBlock
from seq2tens.nn.layers import LS2T, LS2TState
from seq2tens.nn.masked import MaskedBatchNorm
from seq2tens.ops.heap import trim_heap

State = Any  # tensors in tuples, lists and dictionaries
Step = Callable[[Any, State], tuple[Any, State]]
_KNOWN = (LS2T, LS2TBlock, DeepLS2T)
_TRIM = 8  # chunks after which the heap is trimmed
_running_again: ContextVar[bool] = ContextVar("running_again", default=False)


class BlockState(NamedTuple):
    """Where a block stands after some steps: the last of them, and the state of its layer."""

    last: Float[Tensor, "batch 1 in_features"]
    layer: LS2TState


def checkpoint_chunks(
    module: nn.Module | Step,
    chunks: Sequence[Any] | Iterable[Any],
    *,
    state: State = None,
    truncate: int | None = None,
) -> tuple[list[Any], State]:
    """Run a module over chunks of a sequence, each from where the one before it ended.

    Results and gradients are those of one call on the whole sequence. What the backward pass needs is not
    kept but computed again, a chunk at a time, from the states between chunks.

    Args:
        module: an `LS2T`, an `LS2TBlock` or a `DeepLS2T`, see `chunkwise`; or any module or function that
            takes a chunk and a state, None at first, and returns an output and the next state.
        chunks: tensors or arrays `(batch, steps, channels)`, or whatever the function takes. If they have a
            length and can be indexed they are read again in the backward pass, else they are kept for it.
            An `LS2T` with `reverse` takes the last chunk first.
        state: where to begin, as an earlier call returned it.
        truncate: let no gradient flow from a chunk into those before, at every so many chunks. The default is
            the exact gradient.

    Returns:
        The outputs of all chunks, and the state after the last. Without `return_sequences` the last output is
        that of the whole sequence. Outputs of every step take the memory that they take; a function may
        return a chunk's loss in their place.
    """
    if truncate is not None:
        check.positive_int("truncate", truncate)
    step = chunkwise(module) if isinstance(module, _KNOWN) else module
    outputs = []
    for index, load in enumerate(_loaders(chunks)):
        output, state = _run(step, load, state, trim=index % _TRIM == 0)
        outputs.append(output)
        if truncate is not None and (index + 1) % truncate == 0:
            state = tree_map_only(Tensor, Tensor.detach, state)
    check.require(len(outputs) > 0, "`chunks` must hold at least one chunk, got none")
    return outputs, state


def time_chunks(x: Tensor | np.ndarray, steps: int) -> Sequence[Tensor]:
    """Cut sequences `(batch, time, channels)` into chunks of so many steps, the last of which may be shorter.

    Of an array, which may be a memory map of a file, a chunk is read when it is asked for.
    """
    check.positive_int("steps", steps)
    check.require(x.ndim == 3, f"`x` must have 3 axes (batch, time, channels), got {x.ndim}")
    return x.split(steps, dim=1) if isinstance(x, Tensor) else _ArrayChunks(x, steps)


def chunkwise(module: nn.Module, *, norm: Literal["running", "chunk"] | None = None) -> Step:
    """The function (chunk, state) → (output, next state) of an `LS2T`, an `LS2TBlock` or a `DeepLS2T`.

    Statistics of a batch normalisation in training are those of whole sequences, which a chunk does not
    know. Unless the module is in evaluation mode, `norm` has to say what takes their place: `"running"`, the
    running statistics, which stay as they are; or `"chunk"`, those of each chunk, which the running ones
    follow.
    """
    check.choice("norm", norm, ("running", "chunk", None))
    norms = [part for part in module.modules() if isinstance(part, MaskedBatchNorm)]
    if isinstance(module, LS2T):
        return partial(_advance_layer, module)
    name = type(module).__name__
    check.require(
        isinstance(module, _KNOWN), f"`module` must be an LS2T, an LS2TBlock or a DeepLS2T, got {name}"
    )
    blocks = [part for part in module.modules() if isinstance(part, LS2TBlock)]
    for part in (module, *blocks):
        _check_forward(part)

    def step(x: Tensor, state: tuple[BlockState, ...] | None) -> tuple[Tensor, tuple[BlockState, ...]]:
        for block in blocks:
            _check_block(block, norm)
        with _statistics(norms, norm):
            return _advance_blocks(blocks, x, state)

    return step


class _ArrayChunks(Sequence[Tensor]):
    def __init__(self, array: np.ndarray, steps: int) -> None:
        self._array, self._steps = array, steps

    def __len__(self) -> int:
        return -(-self._array.shape[1] // self._steps)

    def __getitem__(self, index: Any) -> Any:
        begin = range(0, self._array.shape[1], self._steps)[index]
        return torch.from_numpy(np.array(self._array[:, begin : begin + self._steps]))


def _loaders(chunks: Any) -> Iterator[Callable[[], Any]]:
    """A function for each chunk that gives it, as often as it is called."""
    whole = isinstance(chunks, Tensor | np.ndarray)
    check.require(not whole, "`chunks` must be several, got one tensor or array; see `time_chunks`")
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
    """One chunk; with gradients, of all that it computes only its results stay."""

    def run(state: State) -> tuple[Any, State]:
        if trim:
            trim_heap()
        found = step(load(), state)
        pair = isinstance(found, tuple) and len(found) == 2
        check.require(pair, f"`module` must return an output and a state, got {type(found).__name__}")
        return found

    if not torch.is_grad_enabled():
        return run(state)
    return checkpoint(run, state, use_reentrant=False, context_fn=lambda: (nullcontext(), _again()))


@contextmanager
def _again() -> Iterator[None]:
    token = _running_again.set(True)
    try:
        yield
    finally:
        _running_again.reset(token)


@contextmanager
def _statistics(norms: list[MaskedBatchNorm], norm: str | None) -> Iterator[None]:
    """Inside, normalisations use the statistics chosen; those of a chunk are followed once only."""
    before = [(part.training, part.momentum) for part in norms]
    try:
        for part in norms:
            part.training = part.training and norm == "chunk"
            part.momentum = 0.0 if _running_again.get() else part.momentum
        yield
    finally:
        for part, (training, momentum) in zip(norms, before, strict=True):
            part.training, part.momentum = training, momentum


def _check_forward(module: nn.Module) -> None:
    cls = DeepLS2T if isinstance(module, DeepLS2T) else LS2TBlock
    own = type(module).forward is not cls.forward or "forward" in vars(module)
    name = type(module).__name__
    check.require(not own, f"`module` must have the `forward` of {cls.__name__} in chunks, got {name}'s own")


def _check_block(block: LS2TBlock, norm: str | None) -> None:
    check.require(
        block.time not in ("index", "centred"),
        f"`module` must not embed time, which needs the length of the sequence, got time={block.time!r}",
    )
    check.require(not block.ls2t.reverse, "`module` must look back only, got a block with reverse=True")
    check.require(
        not (block.training and block.spatial_dropout),
        "`module` must be in evaluation mode or without dropout, which drops channels of whole sequences, "
        f"got spatial_dropout={block.spatial_dropout}",
    )
    check.require(
        block.norm is None or not block.norm.training or norm is not None,
        "`module` must be in evaluation mode, because statistics of a batch need whole sequences; "
        '`chunkwise(module, norm="running")` and `norm="chunk"` train with others, '
        "got a normalisation in training mode",
    )


def _advance_layer(layer: LS2T, x: Tensor, state: LS2TState | None) -> tuple[Tensor, LS2TState]:
    output, after = layer(x, state=state, return_state=True)
    return output, after


def _advance_blocks(
    blocks: list[LS2TBlock], x: Tensor, states: tuple[BlockState, ...] | None
) -> tuple[Tensor, tuple[BlockState, ...]]:
    """One chunk through all blocks; an increment is taken from the last step of the chunk before."""
    after = []
    for index, block in enumerate(blocks):
        last, layer = (torch.zeros_like(x[:, :1]), None) if states is None else states[index]
        moves = x - torch.cat([last, x[:, :-1]], dim=1) if block.difference else x
        y, layer = _advance_layer(block.ls2t, moves, layer)
        after.append(BlockState(x[:, -1:].clone(), layer))  # a view would keep all of the chunk
        x = (y if block.norm is None else block.norm(y)).flatten(-2)
    return x, tuple(after)
