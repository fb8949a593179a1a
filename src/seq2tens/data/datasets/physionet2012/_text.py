"""The original layout of the challenge: one text file per stay, with lines `Time,Parameter,Value`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from seq2tens.data.datasets.physionet2012._measurements import (
    DESCRIPTORS,
    HORIZON,
    ICU_TYPES,
    NUMBERS,
    UNKNOWN,
    Measurements,
    Pick,
    Records,
    Skipped,
    gather,
)
from seq2tens.data.readers._text import ReadError, malformed, numbered_lines

HEADER = "Time,Parameter,Value"
RECORD, DEATH = "RecordID", "In-hospital_death"

Line = tuple[int, int, float]  # minute, number of the parameter, value


def read_text(
    folder: str | Path,
    outcomes: str | Path | None = None,
    *,
    skip_bad: bool = False,
    pick: Pick = "mean",
) -> Records:
    """Read the stays of a folder, each from a file `<RecordID>.txt`.

    The value -1 means unknown.

    Args:
        folder: folder with the files.
        outcomes: the file with the column `In-hospital_death`; without it there are no labels.
        skip_bad: skip stays that cannot be read; `skipped` of the result lists them with reasons. Otherwise
            the first one raises a `ReadError` that names file, line and reason.
        pick: which value to use if a parameter has several at one time, from two devices for instance: their
            `"mean"` or the `"last"` one.
    """
    files = sorted(path for path in Path(folder).glob("*.txt") if path.stem.isdecimal())
    if not files:
        raise malformed(Path(folder), "must hold a file such as 132539.txt for each stay, got none")
    deaths = None if outcomes is None else _read_deaths(Path(outcomes))
    stays, skipped = [], []
    for path in files:
        try:
            _require_outcome(path, deaths, outcomes)
            stays.append((int(path.stem), np.array(list(_Stay(path).lines()))))
        except ReadError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(int(path.stem), str(path), error.line, error.reason))
    return gather(_measurements_of(stays), deaths, tuple(skipped), pick)


def _measurements_of(stays: list[tuple[int, np.ndarray]]) -> Measurements:
    lines = np.concatenate([np.empty((0, 3)), *(lines for _, lines in stays)])
    records, counts = (
        np.array([(record, len(lines)) for record, lines in stays], dtype=np.int64).reshape(-1, 2).T
    )
    minute, parameter = lines[:, 0].astype(np.int64), lines[:, 1].astype(np.int64)
    return Measurements(np.repeat(records, counts), minute, parameter, lines[:, 2].astype(np.float32))


def _require_outcome(path: Path, deaths: dict[int, int] | None, outcomes: str | Path | None) -> None:
    if deaths is not None and int(path.stem) not in deaths:
        raise malformed(path, f"must have an outcome in {outcomes}, got none")


@dataclass
class _Stay:
    """A file that is being read; its state serves to detect implausible lines."""

    path: Path
    line: int = 0
    minute: int = 0
    values: set[tuple[int, float]] = field(default_factory=set)  # those of the current minute
    descriptors: set[int] = field(default_factory=set)

    def lines(self) -> Iterator[Line]:
        """Yield the content of each line."""
        rows = numbered_lines(self.path)
        self.line, header = next(rows, (0, ""))
        if not header:
            raise malformed(self.path, "must not be empty")
        self._require(header == HEADER, f"must be the header {HEADER}, got {header!r}")
        for self.line, row in rows:
            yield self._entry(row)
        if NUMBERS[RECORD] not in self.descriptors:
            raise malformed(self.path, f"must have a line for {RECORD}, got none")

    def _require(self, condition: bool, reason: str) -> None:
        if not condition:
            raise malformed(self.path, reason, self.line)

    def _entry(self, row: str) -> Line:
        cells = row.split(",")
        if len(cells) != 3:
            raise malformed(self.path, f"must have 3 cells ({HEADER}), got {len(cells)}", self.line)
        minute, parameter, value = _minute(cells[0]), NUMBERS.get(cells[1]), _value(cells[2])
        if minute is None:
            raise malformed(self.path, f"time must be HH:MM and not negative, got {cells[0]!r}", self.line)
        if parameter is None:
            raise malformed(
                self.path, f"parameter must be one of the challenge's, got {cells[1]!r}", self.line
            )
        if value is None:
            raise malformed(self.path, f"value must be a finite number, got {cells[2]!r}", self.line)
        self._advance(minute, cells[0])
        self._remember(parameter, value, row)
        return minute, parameter, value

    def _advance(self, minute: int, text: str) -> None:
        if minute == self.minute:
            return
        before = f"{self.minute // 60:02d}:{self.minute % 60:02d}"
        self._require(minute > self.minute, f"time must not go back, got {text} after {before}")
        self.minute = minute
        self.values.clear()

    def _remember(self, parameter: int, value: float, row: str) -> None:
        """Record a value; different values at one time are allowed, but not the same line twice."""
        if (parameter, value) in self.values:
            raise malformed(
                self.path, f"must not repeat a time, parameter and value, got {row!r} again", self.line
            )
        self.values.add((parameter, value))
        if parameter < len(DESCRIPTORS):
            self._describe(parameter, value)

    def _describe(self, parameter: int, value: float) -> None:
        name = DESCRIPTORS[parameter]
        self._require(self.minute == 0, f"{name} must be given at 00:00, got a later time")
        self._require(parameter not in self.descriptors, f"{name} must be given once, got a second value")
        self.descriptors.add(parameter)
        if name == RECORD:
            self._require(
                value == int(self.path.stem), f"{name} must match the name of the file, got {value:g}"
            )
        if name == "ICUType":
            self._require(value in (*ICU_TYPES, UNKNOWN), f"{name} must be 1, 2, 3 or 4, got {value:g}")


@cache
def _minute(text: str) -> int | None:
    """Parse minutes since admission; None if the text is not a time."""
    hours, _, minutes = text.partition(":")
    if not (hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2 and int(minutes) < 60):
        return None
    minute = 60 * int(hours) + int(minutes)
    return minute if minute < HORIZON else None


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number; in a data file it is a mistake.
    return value if math.isfinite(value) and "_" not in text else None


def _read_deaths(path: Path) -> dict[int, int]:
    """Read whether the patient died in hospital (1) or not (0), by record number."""
    rows = numbered_lines(path)
    columns = next(rows, (0, ""))[1].split(",")
    for name in (RECORD, DEATH):
        if name not in columns:
            raise malformed(path, f"must have a column `{name}`, found {', '.join(columns) or 'nothing'}")
    deaths: dict[int, int] = {}
    for line, row in rows:
        cells = dict(zip(columns, row.split(","), strict=False))
        record, death = cells.get(RECORD, ""), cells.get(DEATH, "")
        if not record.isdecimal() or death not in ("0", "1"):
            raise malformed(
                path, f"must have a {RECORD} and {DEATH} 0 or 1, got {record!r} and {death!r}", line
            )
        if int(record) in deaths:
            raise malformed(path, f"must have one line for {RECORD} {record}, got a second one", line)
        deaths[int(record)] = int(death)
    return deaths
