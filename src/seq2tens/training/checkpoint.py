"""Checkpoint files. Two generations are kept by default; a damaged file is skipped."""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch

from seq2tens import _checks as check
from seq2tens._storage import write_atomically
from seq2tens.training.state import Snapshot

# Format 1 was a safetensors file.
FORMAT = 2
PATTERN, PATTERN_1 = "epoch-*.pt", "epoch-*.safetensors"
DIGEST = hashlib.sha256
DIGEST_BYTES = DIGEST().digest_size


@dataclass
class Checkpoints:
    """A folder of checkpoints of one run.

    Args:
        folder: the folder; created if it does not exist.
        seconds: minimum time between saves, which take place at the end of an epoch; 0 saves every epoch.
            Epochs after the last save are trained again on resuming, with the same result.
        keep: number of generations to keep.
    """

    folder: Path
    seconds: float = 10.0
    keep: int = 2
    _last: float = field(default_factory=time.monotonic, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        check.between("seconds", self.seconds, 0, float("inf"), low_included=True)
        check.positive_int("keep", self.keep)

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._last >= self.seconds

    def write(self, epoch: int, snapshot: Snapshot) -> Path:
        """Save a generation, then remove the oldest ones beyond `keep`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / PATTERN.replace("*", f"{epoch:06d}")
        write_atomically(path, encode({"format": FORMAT, **snapshot}))
        for old in self.generations()[self.keep :]:
            old.unlink()
        self._last = time.monotonic()
        return path

    def generations(self) -> list[Path]:
        """Return the files, newest first."""
        return sorted(self.folder.glob(PATTERN), reverse=True)

    def read(self) -> Snapshot | None:
        """Return the newest generation that can be read, None if there is none."""
        for path in self.generations():
            try:
                return decode(path.read_bytes())
            except check.ArgumentError as error:
                # Rename it, or it would count as a generation.
                path.replace(path.with_suffix(".damaged"))
                warnings.warn(
                    f"checkpoint {path} is damaged ({error}); using an earlier one, or starting again",
                    RuntimeWarning,
                    stacklevel=2,
                )
        for path in self.folder.glob(PATTERN_1):
            raise check.ArgumentError(
                f"`checkpoint` must have format {FORMAT}, got format 1, which is no longer supported, "
                f"in {path}; use another folder"
            )
        return None


def encode(snapshot: Snapshot) -> bytes:
    """Return the content of a file: a digest, then the output of `torch.save`."""
    buffer = io.BytesIO()
    torch.save(snapshot, buffer)
    content = buffer.getvalue()
    return DIGEST(content).digest() + content


def decode(content: bytes) -> Snapshot:
    """Read a snapshot of plain data and tensors; raise `ArgumentError` if the content has been changed."""
    digest, saved = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    check.require(DIGEST(saved).digest() == digest, "the content does not match its digest")
    return torch.load(io.BytesIO(saved), map_location="cpu", weights_only=True)
