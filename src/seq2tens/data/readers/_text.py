"""Helper functions of the readers: errors, numbered lines, numbers and labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import Float

from seq2tens._checks import ArgumentError

# Case-insensitive; Python itself reads `nan` as a number.
MISSING = ("?", "na", "n/a", "null", "none")


class ReadError(ArgumentError):
    """Raised for a file that violates its format; the message names file, line and reason."""

    line: int | None = None
    reason: str = ""


def malformed(path: Path, reason: str, line: int | None = None) -> ReadError:
    """Return the error to raise for a file and, if it has lines, for one of them."""
    error = ReadError(f"{path}: {reason}" if line is None else f"{path}, line {line}: {reason}")
    error.line, error.reason = line, reason
    return error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Prefix the message of any other error about the content with the name of the file."""
    try:
        yield
    except ReadError:
        raise
    except (ValueError, TypeError) as error:
        raise malformed(path, str(error)) from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines that are not blank, stripped, with their numbers from 1."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(_decoded(path, file), start=1):
            if stripped := line.strip():
                yield number, stripped


def _decoded(path: Path, lines: Iterator[str]) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise malformed(path, f"must be UTF-8 text, {error.reason} at byte {error.start}") from error


def parse_number(cell: str) -> float:
    """Parse a finite number or NaN (missing); ValueError for anything else."""
    try:
        value = float(cell)
    except ValueError:
        if cell.strip().lower() in MISSING:
            return np.nan
        raise
    # Python reads 1_000 and `inf` as numbers; in a data file both are mistakes.
    if value in (np.inf, -np.inf) or "_" in cell:
        raise ValueError(cell)
    return value


def missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.strip().lower() in ("", "nan", *MISSING)


def number_row(text: str, path: Path, line: int, channel: int) -> Float[np.ndarray, " time"]:
    """Parse one channel of a sequence: numbers separated by commas."""
    values = []
    for step, cell in enumerate(text.split(",")):
        try:
            values.append(parse_number(cell))
        except ValueError:
            reason = f"channel {channel}, step {step} must be a finite number or `?`, got {cell.strip()!r}"
            raise malformed(path, reason, line) from None
    return np.array(values)


def channel_rows(rows: list[str], path: Path, line: int) -> Float[np.ndarray, "channels time"]:
    """Parse the channels of a sequence, one string each, which must have the same length."""
    channels = [number_row(text, path, line, channel) for channel, text in enumerate(rows)]
    for i, values in enumerate(channels):
        if len(values) != len(channels[0]):
            reason = f"channel {i} must have {len(channels[0])} steps like channel 0, got {len(values)}"
            raise malformed(path, reason, line)
    return np.stack(channels)


def require_channels(channels: int, expected: int, path: Path, line: int) -> None:
    """Require as many channels as the first sequence has."""
    if channels != expected:
        raise malformed(path, f"must have {expected} channels like the first sequence, got {channels}", line)


def label_of(text: str, allowed: list[str] | None, path: Path, line: int) -> str | float:
    """Return a class label, one of those declared, or a number if none are declared (regression)."""
    if allowed is not None:
        if text not in allowed:
            raise malformed(path, f"label must be one of {', '.join(allowed)}, got {text!r}", line)
        return text
    try:
        return parse_number(text)
    except ValueError:
        raise malformed(path, f"target must be a finite number, got {text!r}", line) from None
