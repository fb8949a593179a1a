"""States as trees of dicts, tuples, tensors and numbers: in memory, and in one file without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens._storage import Saved, Tensors, decode, digest, encode, write_atomically

Tree = Any  # dict[str, Tree] | tuple[Tree, ...] | Tensor | int | float


def fingerprint(module: nn.Module) -> int:
    """A number that tells weights apart; JSON keeps it exactly."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    return int(digest(tensors, type(module).__name__)[:13], 16)


def moved(tree: Tree, device: torch.device) -> Tree:
    """The same tree on another device."""
    if isinstance(tree, Tensor):
        return tree.to(device)
    return tuple(moved(branch, device) for branch in tree) if isinstance(tree, tuple) else tree


def shapes(tree: Tree) -> Any:
    """The tree with types and shapes in place of tensors."""
    if isinstance(tree, Tensor):
        return tree.dtype, tuple(tree.shape)
    return [shapes(branch) for branch in tree] if isinstance(tree, tuple) else type(tree)


def save(path: str | Path, tree: Tree, notes: dict[str, Any]) -> None:
    """Write a tree and JSON data to a file, completely or not at all."""
    tensors: Tensors = {}
    document = {"state": _taken_apart(tree, tensors), "notes": notes}
    write_atomically(Path(path), encode(Saved(tensors, document)))


def load(path: str | Path) -> tuple[Tree, dict[str, Any]]:
    """What `save` was given."""
    path = Path(path)
    check.require(path.is_file(), f"`path` must be the file of a saved state, got {path}")
    try:
        tensors, document = decode(path.read_bytes())
        return _put_together(document["state"], tensors), document["notes"]
    except (check.ArgumentError, KeyError, TypeError) as error:
        raise check.ArgumentError(
            f"`path` must be the file of a saved state, but {path} cannot be read: {error}"
        ) from error


def _taken_apart(tree: Tree, tensors: Tensors) -> Any:
    """The tree as JSON data; its tensors are put into `tensors`, and stand there under a number."""
    if isinstance(tree, Tensor):
        name = str(len(tensors))
        tensors[name] = tree.detach().cpu().contiguous()
        return {"tensor": name}
    if isinstance(tree, tuple):
        return [_taken_apart(branch, tensors) for branch in tree]
    if isinstance(tree, dict):
        return {"dict": {name: _taken_apart(branch, tensors) for name, branch in tree.items()}}
    return tree


def _put_together(data: Any, tensors: Tensors) -> Tree:
    if isinstance(data, list):
        return tuple(_put_together(branch, tensors) for branch in data)
    if not isinstance(data, dict):
        return data
    if "tensor" in data:
        return tensors[data["tensor"]]
    return {name: _put_together(branch, tensors) for name, branch in data["dict"].items()}
