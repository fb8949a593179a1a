"""A module that processes sequences step by step."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.nn.context import NotInContext, call_in_context
from seq2tens.nn.convolutional import ConvBlock
from seq2tens.nn.layers import BiLS2T
from seq2tens.nn.streaming import storage
from seq2tens.nn.streaming.live import Live, Push
from seq2tens.nn.streaming.probe import Refusals, find_reach
from seq2tens.nn.streaming.storage import State

# Outputs (or steps, if only the last output is requested) that are computed at once, to limit memory.
BLOCK = 2048
REFUSALS = Refusals(
    clock="`length` must be given for a network that sees the time of a step relative to the whole sequence "
    "(`time_embedding`), because that depends on the number of steps. For a stream without end, build the "
    "network with `time_embedding=False`",
    future="`module` must not look at the future to be streamed, got {name}",
)


class StreamState(NamedTuple):
    """The current state of a stream. Nothing in it is ever changed in place."""

    steps: int = 0
    batch: int = 0  # batch and channels are 0 before the first push, when they are not known yet
    channels: int = 0
    states: tuple[Tensor, ...] = ()  # of the operations of a context, in the order of their calls


class Stream:
    """Online inference: a layer or network that processes sequences step by step, with a state of fixed size.

    The output after step t equals that of the module, in eval mode, for the first t steps. Dropout is off,
    batch normalisation uses running statistics whatever `module.training` says, and there are no gradients.
    The stream uses the weights at the time it was opened. All arithmetic is in float64.

    Supported modules are `LS2T`, `LS2TBlock`, `DeepLS2T`, `FCN`, `ResNet`, `FCNLS2T`, your own modules
    written for a context (see `Network`), and `torch.nn.Sequential` of these, of path transforms and of
    pointwise modules (`Linear`, `ReLU`, …).

    Args:
        module: the layer or network.
        length: number of steps of the whole sequence. Required if the module uses the relative time of a step
            (`time_embedding`). Without `length` a stream can go on forever.
    """

    def __init__(self, module: nn.Module, *, length: int | None = None) -> None:
        if length is not None:
            check.positive_int("length", length)
        self.length = length
        self._module = _frozen(module)
        self._constants: dict[nn.Module, Any] = {}
        self._reach = find_reach(self._module, REFUSALS, length=length)
        self._device, self._dtype = _home(module)
        self._fingerprint = storage.fingerprint(module)
        self._state = StreamState()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_constants": {}}  # functions with packed weights, which are prepared again

    @property
    def steps(self) -> int:
        """Number of steps that have been pushed."""
        return self._state.steps

    @property
    def ahead(self) -> int:
        """Number of steps that the module looks ahead; the last `ahead` outputs are not final."""
        return self._reach.ahead

    def push(
        self, chunk: Float[Tensor, "batch steps channels"], *, last: bool = False
    ) -> Float[Tensor, "batch outputs ..."]:
        """Process some steps, possibly none.

        Returns the output after every step, `(batch, steps, …)`, or with `last` only that after the last
        step, `(batch, 1, …)`, which takes less time. For a module that returns sequences and looks ahead (an
        `FCN` with `return_sequences`), these are the outputs that have become final, and `finish` returns
        the rest. An error leaves the stream unchanged.
        """
        self._check(chunk, last)
        if chunk.shape[1] == 0:
            return self._empty(chunk)
        with torch.inference_mode():
            state, outputs = self._state, []
            for part in chunk.double().split(max(1, BLOCK // chunk.shape[0]), dim=1):
                y, state = self._advance(part, state, last)
                outputs.append(y)
            y = outputs[-1] if last or len(outputs) == 1 else torch.cat(outputs, dim=1)
        self._state = state
        return self._copied(y)

    def finish(self) -> Float[Tensor, "batch outputs ..."]:
        """Return the outputs that are still missing if the sequence ends here.

        There are some only for a module that returns sequences and looks ahead. The stream does not change
        and can go on.
        """
        state = self._state
        check.require(state.steps > 0, "`finish` needs at least one step, got none")
        nothing = torch.zeros(state.batch, 0, state.channels, dtype=torch.float64, device=self._device)
        if not self._gives_sequences_late:
            return self._empty(nothing)
        push = Push(state.batch, state.steps, stride=0, ends=1, ahead=self.ahead, per_position=False)
        with torch.inference_mode():
            y, _ = self._run(nothing, push, state.states)
        return self._copied(y[:, max(0, self.ahead - state.steps) :])

    def reset(self) -> None:
        """Begin a new sequence."""
        self._state = StreamState()

    def to(self, device: torch.device | str) -> Stream:
        """Move the weights and the state of the stream to another device."""
        self._device = torch.device(device)
        self._module.to(device)
        self._constants = {}
        self._state = self._state._replace(states=storage.to_device(self._state.states, self._device))
        return self

    def state(self) -> dict[str, State]:
        """Return the state of the stream as a tree of dicts, tuples, tensors and numbers, of fixed size."""
        return {"fingerprint": self._fingerprint, "length": self.length or 0, **self._state._asdict()}

    def restore(self, state: dict[str, State]) -> None:
        """Continue from a state of another stream of the same module."""
        keys = {"fingerprint", "length", *StreamState._fields}
        check.require(
            isinstance(state, dict) and set(state) == keys,
            f"`state` must be a dict with the keys {', '.join(sorted(keys))}, "
            f"got {', '.join(map(repr, state)) if isinstance(state, dict) else type(state).__name__}; "
            "states saved by earlier versions cannot be restored",
        )
        check.require(
            state["fingerprint"] == self._fingerprint,
            "`state` must come from a stream of this module, got one with other weights",
        )
        length = self.length or 0
        check.require(
            state["length"] == length,
            f"`state` must come from a stream with length={self.length}, got {state['length'] or None}",
        )
        restored = StreamState(**{name: state[name] for name in StreamState._fields})
        self._check_tree(restored)
        self._state = restored._replace(states=storage.to_device(restored.states, self._device))

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the state to a file, atomically.

        `notes` is JSON data of the caller, which `load` returns.
        """
        storage.save(path, self.state(), notes or {})

    def load(self, path: str | Path) -> dict[str, Any]:
        """Restore the state that `save` wrote, and return the notes."""
        state, notes = storage.load(path)
        self.restore(state)
        return notes

    @property
    def _gives_sequences_late(self) -> bool:
        return self.ahead > 0 and self._reach.gives_sequences

    def _advance(self, part: Tensor, state: StreamState, last: bool) -> tuple[Tensor, StreamState]:
        """Return the outputs for a few steps, and the state of the stream after them."""
        batch, steps, channels = part.shape
        every = not self._reach.gives_sequences and self.ahead > 0 and not last
        ends, stride = (steps, 1) if every else (1, steps)
        push = Push(batch, state.steps, stride, ends, self.ahead, per_position=self.ahead == 0 and not last)
        y, states = self._run(part, push, state.states)
        if self._gives_sequences_late:
            y = y[:, min(steps, max(0, self.ahead - state.steps)) : steps]
        elif not self._reach.gives_sequences:
            y = y.unflatten(0, (batch, -1))
        elif last:
            y = y[:, -1:]
        return y, StreamState(state.steps + steps, batch, channels, states)

    def _run(self, x: Tensor, push: Push, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        live = Live(push, states, self._device, length=self.length, constants=self._constants)
        y = call_in_context(self._module, live.enter(x), live)
        return y, tuple(live.after)

    def _empty(self, chunk: Tensor) -> Tensor:
        """Return zero outputs, in the shape that outputs have."""
        step = torch.zeros(chunk.shape[0], self.ahead + 1, chunk.shape[2], dtype=torch.float64)
        with torch.inference_mode():
            y, _ = self._advance(step.to(self._device), StreamState(), last=False)
        return self._copied(y[:, :0])

    def _copied(self, y: Tensor) -> Tensor:
        """Return a copy in the module's dtype, because autograd refuses tensors of inference mode."""
        return y.to(self._dtype, copy=True)

    def _check(self, chunk: Tensor, last: bool) -> None:
        check.sequences("chunk", chunk)
        rule = f"`chunk` must be on the device of the stream, {self._device}"
        check.require(chunk.device.type == self._device.type, f"{rule}, got {chunk.device}")
        batch, steps, channels = chunk.shape
        state = self._state
        check.require(batch > 0, f"`chunk` must hold at least one sequence, got shape {tuple(chunk.shape)}")
        if state.steps == 0:
            self._check_channels(channels)
        else:
            check.require(
                (batch, channels) == (state.batch, state.channels),
                f"`chunk` must have shape ({state.batch}, steps, {state.channels}) as before, "
                f"got {tuple(chunk.shape)}",
            )
        total = state.steps + steps
        check.require(
            self.length is None or total <= self.length,
            f"`chunk` must not go beyond `length` = {self.length} steps, got {total}",
        )
        check.require(
            not (last and self._gives_sequences_late),
            "`last` must be False for a module that returns sequences and looks ahead, because its output at "
            "the last step is not final, got True",
        )

    def _check_channels(self, channels: int) -> None:
        if channels == self._reach.channels:
            return
        try:
            self._reach = find_reach(self._module, REFUSALS, channels=channels, length=self.length)
        except (ValueError, RuntimeError) as error:
            expected = self._reach.channels
            raise check.ArgumentError(
                f"`chunk` must have {expected} channels (in_features), got {channels}"
            ) from error

    def _check_tree(self, state: StreamState) -> None:
        """Require tensors with the shapes of this module's states."""
        expected: tuple[Tensor, ...] = ()
        if state.steps > 0:
            step = torch.zeros(state.batch, 1, state.channels, dtype=torch.float64, device=self._device)
            with torch.inference_mode():
                expected = self._advance(step, StreamState(), last=True)[1].states
        check.require(
            storage.shapes(state.states) == storage.shapes(expected),
            "`state` must have the tensors of this module, got others",
        )


def _home(module: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device of a module and the dtype of its output."""
    for parameter in module.parameters():
        return parameter.device, torch.promote_types(parameter.dtype, torch.float32)
    return torch.device("cpu"), torch.get_default_dtype()


def _frozen(module: nn.Module) -> nn.Module:
    """Return a copy in float64, which later training of the module does not change."""
    for part in module.modules():
        if isinstance(part, BiLS2T):
            raise NotInContext(REFUSALS.future.format(name="BiLS2T"))
    frozen = copy.deepcopy(module).double().eval().requires_grad_(False)
    for part in frozen.modules():
        if isinstance(part, ConvBlock):
            part.fold_norm()
    return frozen
