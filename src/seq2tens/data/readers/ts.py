"""The `.ts` format of the time series classification archive.

aeon has a loader, but it converts labels to lower case, drops the sign of values with time stamps and reports
no line numbers. So this simple format is read here; a test compares with aeon's loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seq2tens.data.arrays import from_aeon
from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import (
    channel_rows,
    label_of,
    malformed,
    naming,
    numbered_lines,
    require_channels,
)

Lines = Iterator[tuple[int, str]]
# name in lower case → line and values
Tags = dict[str, tuple[int, list[str]]]


@dataclass(frozen=True)
class Header:
    """The relevant content of the `@` lines."""

    labelled: bool
    classes: list[str] | None
    equal_length: bool


def read_ts(path: str | Path) -> Labelled:
    """Read a `.ts` file: labels are strings, or floats if the header has `@targetLabel true`."""
    path = Path(path)
    lines = numbered_lines(path)
    header = _header(_tags(lines, path), path)
    series: list[np.ndarray] = []
    labels: list[str | float] = []
    for line, text in lines:
        rows = text.split(":")
        if header.labelled:
            labels.append(label_of(rows.pop().strip(), header.classes, path, line))
        if not rows:
            raise malformed(path, "must have at least one channel before the label", line)
        series.append(channel_rows(rows, path, line))
        _check_case(series, header, path, line)
    if not series:
        raise malformed(path, "must hold at least one sequence after `@data`, got none")
    with naming(path):
        return Labelled(from_aeon(series), np.array(labels) if header.labelled else None)


def _tags(lines: Lines, path: Path) -> Tags:
    """Read the header, and leave `lines` at the first sequence."""
    tags: Tags = {}
    for line, text in lines:
        if text[0] in "#%":
            continue
        if text[0] != "@":
            raise malformed(
                path, f"the header must be comments (`#`) and tags (`@`), got {text[:40]!r}", line
            )
        name, *values = text.split()
        if name.lower() == "@data":
            return tags
        tags[name.lower()] = (line, values)
    raise malformed(path, "must have a line `@data`, got none")


def _header(tags: Tags, path: Path) -> Header:
    if _flag(tags, "@timestamps", path):
        reason = "`@timeStamps true` is not supported; a long table (.csv) can hold times"
        raise malformed(path, reason, tags["@timestamps"][0])
    if "@classlabel" not in tags and "@targetlabel" not in tags:
        raise malformed(path, "the header must have `@classLabel` or `@targetLabel`, got neither")
    classified, regressed = _flag(tags, "@classlabel", path), _flag(tags, "@targetlabel", path)
    return Header(
        classified or regressed,
        _classes(*tags["@classlabel"], path) if classified else None,
        _flag(tags, "@equallength", path),
    )


def _flag(tags: Tags, name: str, path: Path) -> bool:
    if name not in tags:
        return False
    line, values = tags[name]
    value = values[0].lower() if values else ""
    if value not in ("true", "false"):
        raise malformed(path, f"`{name}` must be `true` or `false`, got {value!r}", line)
    return value == "true"


def _classes(line: int, values: list[str], path: Path) -> list[str]:
    if len(values) == 1:
        raise malformed(path, "`@classLabel true` must be followed by the labels, got none", line)
    return values[1:]


def _check_case(series: list[np.ndarray], header: Header, path: Path, line: int) -> None:
    (channels, steps), last = series[0].shape, series[-1]
    require_channels(len(last), channels, path, line)
    if header.equal_length and last.shape[1] != steps:
        reason = f"must have {steps} steps (the header says `@equalLength true`), got {last.shape[1]}"
        raise malformed(path, reason, line)
