"""Checkpoint files: tensors and a JSON document in one safetensors file, so that the two always agree.

A file is written under another name, forced to disk and then renamed, so that a file with the right name is
complete whatever happens. Two generations are kept; one that cannot be read is passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.training._fields import between

Tensors = dict[str, Tensor]
PATTERN = "epoch-*.safetensors"


class Saved(NamedTuple):
    """What a checkpoint holds."""

    tensors: Tensors
    document: dict[str, Any]


@dataclass
class Checkpoints:
    """A folder of checkpoints of one run.

    Args:
        folder: made if it does not exist.
        seconds: save at the first end of an epoch after so much time; 0 saves every epoch. Epochs after the
            last save are trained again on resuming, with the same result.
        keep: generations.
    """

    folder: Path
    seconds: float = 10.0
    keep: int = 2
    _last: float = field(default_factory=time.monotonic, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        between("seconds", self.seconds, 0, float("inf"), low_included=True)
        check.positive_int("keep", self.keep)

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._last >= self.seconds

    def write(self, epoch: int, saved: Saved) -> Path:
        """Save a generation, then remove those that are too old."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"epoch-{epoch:06d}.safetensors"
        write_atomically(path, encode(saved))
        for old in self.generations()[self.keep :]:
            old.unlink()
        self._last = time.monotonic()
        return path

    def generations(self) -> list[Path]:
        """The files, newest first."""
        return sorted(self.folder.glob(PATTERN), reverse=True)

    def read(self) -> Saved | None:
        """The newest generation that can be read, None if there is none."""
        for path in self.generations():
            try:
                return decode(path.read_bytes())
            except (ValueError, safetensors.SafetensorError) as error:
                # Out of the way, or it would count as a generation.
                path.replace(path.with_suffix(".damaged"))
                warnings.warn(
                    f"checkpoint {path} is damaged ({error}); going back to the one before, or to the start",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is either complete or not there, even if the machine stops."""
    # Always the same name, so that what a killed process leaves behind is overwritten.
    temporary = path.with_name("writing.tmp")
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
