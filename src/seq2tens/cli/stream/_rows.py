"""Parse rows: each is a line of CSV or JSON with one step of a sequence."""

from __future__ import annotations

import csv
import json
import math
import reprlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from seq2tens.cli._shell import UserError


class RowError(ValueError):
    """Raised for a row that cannot be used, with the reason."""


class Row(NamedTuple):
    """One step: the id of its sequence, its time and its values, NaN where missing."""

    id: str | None
    time: float | None
    values: list[float]


class Fields(NamedTuple):
    """The names of the fields of a row; `channels` is None if the model was trained without names."""

    id: str
    time: str
    label: str | None
    channels: tuple[str, ...] | None
    n_channels: int
    timed: bool

    @classmethod
    def of(cls, classifier: Any) -> Fields:
        """The names that a model was trained with, else the default ones."""
        from seq2tens.data import Columns

        columns = Columns.from_state(classifier.notes_.get("columns", {}))
        encoding = columns.encoding
        words = (
            []
            if encoding is None
            else [code.name for code in encoding.columns if code.categories is not None]
        )
        if words:
            raise UserError(
                f"the model was trained on the categorical column `{words[0]}`, which a stream cannot read"
            )
        timed = classifier.preparation_.clock is not None
        return cls(
            columns.id or "id",
            columns.time or "time",
            columns.label,
            columns.channels,
            classifier.n_channels_,
            timed,
        )


Parser = Callable[[str], Row]


def csv_parser(header: str, fields: Fields) -> tuple[Parser, bool]:
    """Create a parser of the lines after a header, and say whether they have ids."""
    names = [name.strip() for name in _cells(header.removeprefix("\ufeff"))]
    _check_header(names, fields)
    others = {fields.id, fields.time, fields.label}
    channels = fields.channels or tuple(name for name in names if name not in others)
    indices = [names.index(name) for name in channels]
    id_place = names.index(fields.id) if fields.id in names else None
    time_place = names.index(fields.time) if fields.timed else None

    def parse(line: str) -> Row:
        cells = _cells(line)
        if len(cells) != len(names):
            raise RowError(f"must have {len(names)} cells like the header, got {len(cells)}")
        values = [_number(cells[index], names[index]) for index in indices]
        time = None if time_place is None else _required(_number(cells[time_place], fields.time), fields.time)
        return Row(None if id_place is None else cells[id_place].strip(), time, values)

    return parse, id_place is not None


def json_parser(fields: Fields) -> Parser:
    """Create a parser of lines of JSON: lists of values, or objects with names."""

    def parse(line: str) -> Row:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:  # the latter for deeply nested lists
            raise RowError(f"must be JSON, got {line.strip()[:40]!r} ({error!s:.80})") from None
        if isinstance(data, list):
            if fields.timed:
                raise RowError(f"must be an object with a `{fields.time}`, which the model needs, got a list")
            return Row(None, None, _values(data, fields.n_channels))
        if not isinstance(data, dict):
            raise RowError(f"must be a list or an object, got {type(data).__name__}")
        time = (
            _required(_json_number(_entry(data, fields.time), fields.time), fields.time)
            if fields.timed
            else None
        )
        return Row(_json_id(data.get(fields.id), fields.id), time, _named_values(data, fields))

    return parse


def _check_header(names: Sequence[str], fields: Fields) -> None:
    others = {fields.id, fields.time, fields.label}
    required = [*(fields.channels or ()), *([fields.time] if fields.timed else [])]
    shown = ", ".join(names)
    for name in required:
        if name not in names:
            raise UserError(
                f"the header must name the columns {', '.join(required)} of the model, got {shown}"
            )
    channels = fields.channels or [name for name in names if name not in others]
    if len(channels) != fields.n_channels:
        raise UserError(f"the header must name {fields.n_channels} channels as in training, got {shown}")
    if len(set(names)) < len(names):
        raise UserError(f"the header must not name a column twice, got {shown}")


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r\n")], strict=True), [])
    except csv.Error as error:
        raise RowError(f"must be CSV, got {line.strip()[:40]!r} ({error})") from None


def _number(cell: str, name: str) -> float:
    from seq2tens.data.readers import parse_number

    try:
        return parse_number(cell) if cell and not cell.isspace() else math.nan
    except ValueError:
        raise RowError(f"column `{name}` must be a number, got {cell!r:.60}") from None


def _required(value: float, name: str) -> float:
    if math.isnan(value):
        raise RowError(f"`{name}` must not be missing")
    return value


def _named_values(data: dict[str, Any], fields: Fields) -> list[float]:
    if fields.channels is None:
        return _values(_entry(data, "values"), fields.n_channels)
    return [_json_number(_entry(data, name), name) for name in fields.channels]


def _values(data: Any, n_channels: int) -> list[float]:
    if not isinstance(data, list) or len(data) != n_channels:
        raise RowError(f"must have a list of {n_channels} values, got {reprlib.repr(data)}")
    return [_json_number(value, f"value {i}") for i, value in enumerate(data)]


def _entry(data: dict[str, Any], name: str) -> Any:
    if name not in data:
        names = ", ".join(data) or "nothing"
        raise RowError(f"must have `{name}` (null where missing), got {names:.60}")
    return data[name]


def _json_number(value: Any, name: str) -> float:
    if value is None:
        return math.nan
    number = math.inf
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer may have hundreds of digits
            number = float(value)
    if math.isinf(number):
        # `repr` would fail for deeply nested lists.
        raise RowError(f"`{name}` must be a number or null, got {reprlib.repr(value)}")
    return number


def _json_id(value: Any, name: str) -> str | None:
    if value is not None and not isinstance(value, str | int | float):
        raise RowError(f"`{name}` must be a string or a number, got {reprlib.repr(value)}")
    return None if value is None else str(value)
