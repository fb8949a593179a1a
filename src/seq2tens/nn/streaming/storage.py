"""States of streams (trees of dicts, tuples, tensors and numbers), and their files, without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens._storage import Saved, Tensors, decode, digest, encode, write_atomically

State = Any  # dict[str, State] | tuple[State, ...] | Tensor | int | float


def fingerprint(module: nn.Module) -> int:
    """Return a hash of the weights, small enough to be exact in JSON."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    return int(digest(tensors, type(module).__name__)[:13], 16)


def to_device(state: State, device: torch.device) -> State:
    """Move a state to another device."""
    if isinstance(state, Tensor):
        return state.to(device)
    return tuple(to_device(branch, device) for branch in state) if isinstance(state, tuple) else state


def shapes(state: State) -> Any:
    """Return the state with dtypes and shapes in place of tensors."""
    if isinstance(state, Tensor):
        return state.dtype, tuple(state.shape)
    return [shapes(branch) for branch in state] if isinstance(state, tuple) else type(state)


def save(path: str | Path, state: State, notes: dict[str, Any]) -> None:
    """Write a state and JSON data to a file, completely or not at all."""
    tensors: Tensors = {}
    document = {"state": _flatten(state, tensors), "notes": notes}
    write_atomically(Path(path), encode(Saved(tensors, document)))


def load(path: str | Path) -> tuple[State, dict[str, Any]]:
    """Return the state and the notes that `save` wrote."""
    path = Path(path)
    check.require(path.is_file(), f"`path` must be the file of a saved state, got {path}")
    try:
        tensors, document = decode(path.read_bytes())
        return _unflatten(document["state"], tensors), document["notes"]
    except (check.ArgumentError, KeyError, TypeError) as error:
        raise check.ArgumentError(
            f"`path` must be the file of a saved state, but {path} cannot be read: {error}"
        ) from error


def _flatten(state: State, tensors: Tensors) -> Any:
    """Return the state as JSON data, which refers to its tensors by number; add them to `tensors`."""
    if isinstance(state, Tensor):
        name = str(len(tensors))
        tensors[name] = state.detach().cpu().contiguous()
        return {"tensor": name}
    if isinstance(state, tuple):
        return [_flatten(branch, tensors) for branch in state]
    if isinstance(state, dict):
        return {"dict": {name: _flatten(branch, tensors) for name, branch in state.items()}}
    return state


def _unflatten(data: Any, tensors: Tensors) -> State:
    if isinstance(data, list):
        return tuple(_unflatten(branch, tensors) for branch in data)
    if not isinstance(data, dict):
        return data
    if "tensor" in data:
        return tensors[data["tensor"]]
    return {name: _unflatten(branch, tensors) for name, branch in data["dict"].items()}
