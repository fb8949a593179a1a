"""Tensors and a JSON document in one safetensors file, so that the two always agree.

A file is written under another name, forced to disk and then renamed, so that a file with the right name is
complete whatever happens.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from seq2tens import _checks as check

Tensors = dict[str, Tensor]


class Saved(NamedTuple):
    """What a file holds."""

    tensors: Tensors
    document: dict[str, Any]


def write_atomically(path: Path, content: bytes, temporary_name: str = "writing.tmp") -> None:
    """Write a file that is either complete or not there, even if the machine stops."""
    # Always the same name, so that what a killed process leaves behind is overwritten.
    temporary = path.with_name(temporary_name)
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """A renaming is only on disk once the folder is; not every system can open one."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encode(saved: Saved) -> bytes:
    """The bytes of a file."""
    document = json.dumps(saved.document)
    metadata = {"document": document, "digest": digest(saved.tensors, document)}
    return safetensors.torch.save(saved.tensors, metadata)


def decode(content: bytes) -> Saved:
    """What the bytes hold; ValueError or SafetensorError if they have been changed."""
    tensors = safetensors.torch.load(content)
    metadata = _metadata(content)
    check.require(
        digest(tensors, metadata["document"]) == metadata["digest"], "the content does not match its digest"
    )
    return Saved(tensors, json.loads(metadata["document"]))


def _metadata(content: bytes) -> dict[str, str]:
    """The header's free entries; safetensors reads them from files only, not from bytes."""
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    check.require({"document", "digest"} <= set(metadata), "the header has no document")
    return metadata


def digest(tensors: Tensors, document: str) -> str:
    """A hash of all there is, whatever the order of the tensors."""
    total = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
