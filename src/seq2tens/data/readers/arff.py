r"""Weka's ARFF, as used by the time series archives.

Univariate: one numeric attribute per step, then the class. Multivariate: one relational attribute, a quoted
string of channels separated by `\n`, then the class. The header fixes the number of steps, so shorter
sequences are filled with `?`: trailing steps where every channel is missing are padding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

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
# line and type
Attribute = tuple[int, str]
NUMERIC = ("numeric", "real", "integer")
ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|[^\s'"]+)\s+(.+)""", re.IGNORECASE)
CASE = re.compile(r"""(?P<quote>['"])(?P<rows>.*)(?P=quote)\s*,(?P<label>.*)""")


@dataclass(frozen=True)
class Header:
    """Whether there are several channels, the maximum number of steps, and the classes (None: a number)."""

    relational: bool
    steps: int
    classes: list[str] | None


def read_arff(path: str | Path) -> Labelled:
    """Read an `.arff` file: labels are strings, or floats if the last attribute is numeric."""
    path = Path(path)
    lines = ((line, text) for line, text in numbered_lines(path) if not text.startswith("%"))
    header = _header(lines, path)
    series: list[np.ndarray] = []
    labels: list[str | float] = []
    for line, text in lines:
        rows, label = _cells(text, header, path, line)
        labels.append(label_of(_unquoted(label), header.classes, path, line))
        series.append(_without_padding(channel_rows(rows, path, line)))
        require_channels(len(series[-1]), len(series[0]), path, line)
    if not series:
        raise malformed(path, "must hold at least one sequence after `@data`, got none")
    with naming(path):
        return Labelled(from_aeon(series), np.array(labels))


def _cells(text: str, header: Header, path: Path, line: int) -> tuple[list[str], str]:
    """Return the text of each channel, and the label."""
    if header.relational:
        match = CASE.fullmatch(text)
        if match is None:
            raise malformed(path, "must be a quoted text of channels, a comma and the label", line)
        rows, label = match["rows"].split(r"\n"), match["label"]
    else:
        row, _, label = text.rpartition(",")
        rows = [row]
    steps = max(row.count(",") + 1 for row in rows)
    if steps > header.steps:
        raise malformed(path, f"must have at most {header.steps} steps as in the header, got {steps}", line)
    return rows, label


def _header(lines: Lines, path: Path) -> Header:
    """Read the header, up to `@data`."""
    outer: list[Attribute] = []
    inner = 0
    inside = False
    for line, text in lines:
        keyword = text.split()[0].lower()
        if keyword == "@data":
            return _checked_header(outer, inner, path)
        if keyword == "@end":
            inside = False
        elif keyword == "@attribute" and inside:
            inner += 1
        elif keyword == "@attribute":
            outer.append((line, _kind(text, path, line)))
            inside = outer[-1][1].lower() == "relational"
        elif keyword != "@relation":
            raise malformed(path, f"the header must be `@` lines and comments (`%`), got {text[:40]!r}", line)
    raise malformed(path, "must have a line `@data`, got none")


def _kind(text: str, path: Path, line: int) -> str:
    match = ATTRIBUTE.fullmatch(text)
    if match is None:
        raise malformed(path, f"must be `@attribute name type`, got {text[:40]!r}", line)
    return match[2].strip()


def _checked_header(outer: list[Attribute], inner: int, path: Path) -> Header:
    types = [type_.lower() for _, type_ in outer]
    relational = "relational" in types
    if relational and (len(types) != 2 or types[0] != "relational"):
        raise malformed(
            path, f"must have one relational attribute, then the class, got {len(types)} attributes"
        )
    if len(types) < 2:
        raise malformed(path, f"must have attributes for the steps and for the class, got {len(types)}")
    line, last = outer[-1]
    # Among numeric attributes, a target looks like a step; after a relational one, a number is a target.
    if not last.startswith("{") and not (relational and types[-1] in NUMERIC):
        raise malformed(path, f"the last attribute must be the class, `{{a,b,…}}`, got `{last}`", line)
    classes = [_unquoted(name) for name in last.strip("{}").split(",")] if last.startswith("{") else None
    return Header(relational, inner if relational else len(outer) - 1, classes)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _without_padding(series: Float[np.ndarray, "channels time"]) -> Float[np.ndarray, "channels kept"]:
    observed = np.flatnonzero(~np.isnan(series).all(axis=0))
    return series[:, : observed[-1] + 1 if len(observed) else 0]
