"""Wide tables, with one row per sequence and a column for each step of a channel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens._checks import ArgumentError, require
from seq2tens.data.arrays import from_padded
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables.columns import Columns
from seq2tens.data.tables.encoding import Column, ColumnEncoding, Encoding, Words, as_words, encode, learn

if TYPE_CHECKING:
    import narwhals as nw

# `x_12`, `x12`, `x[12]`, `x.12`, and `12` alone.
STEP = re.compile(r"(.*?)[_\-. \[(]*(\d+)[\])]?")
Groups = Mapping[str, Sequence[str]]
# Name of a channel whose columns are only numbers.
UNNAMED = "value"


def gather_wide(
    table: nw.DataFrame[Any],
    columns: Columns,
    groups: Groups | None,
    index: Sequence[str],
    column_of: Callable[[Any], Column],
) -> Labelled:
    """Convert the rows to sequences; trailing steps without any value are padding."""
    names = table.columns
    present = replace(columns, channels=None, encoding=None, time=None).resolve(
        names, _fail, index, ids_optional=True
    )
    known = columns.encoding
    channels = columns.channels if known is None else known.channels
    groups = groups or _by_step([name for name in present.channels or () if name not in index], channels)
    _check_groups(groups, names)
    cube = np.stack([_steps(table, steps, column_of) for steps in groups.values()], axis=2)
    features = [column_of(table[name]) for name in present.static]
    static = known.static if known is not None else learn(present.static, features, columns.categories)
    packed = from_padded(cube)
    sequences = Sequences(packed.values, packed.offsets, None, encode(static, features) if features else None)
    encoding = Encoding(tuple(map(ColumnEncoding, groups)), tuple(static))
    id, label = (
        None if name is None else _keys(column_of(table[name]), name) for name in (present.id, present.label)
    )
    return Labelled(sequences, label, id, encoding.channels, (), encoding)


def _fail(reason: str) -> Exception:
    return ArgumentError(f"`frame` {reason}")


def _by_step(names: Sequence[str], channels: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the columns of each channel in the order of their numbers."""
    numbered: dict[str, dict[int, str]] = {}
    for name in names:
        match = STEP.fullmatch(name)
        channel = (match[1] or UNNAMED) if match else None
        if channels is not None and channel not in channels:
            continue
        require(
            match is not None,
            f"`frame` as a wide table must have columns of steps such as `x_0`, got `{name}`; name the "
            "`channels`, or pass the columns of each",
        )
        numbered.setdefault(str(channel), {})[int(match[2])] = name  # type: ignore[index]
    first = next(iter(numbered.values()), {})
    for channel, steps in numbered.items():
        require(
            set(steps) == set(first),
            f"`frame` must have the same steps for every channel, but those of `{channel}` differ from "
            f"those of `{next(iter(numbered))}`",
        )
    ordered = {channel: [steps[step] for step in sorted(steps)] for channel, steps in numbered.items()}
    return ordered if channels is None else {channel: ordered.get(channel, []) for channel in channels}


def _check_groups(groups: Groups, names: Sequence[str]) -> None:
    require(len(groups) > 0, f"`frame` must have columns of steps such as `x_0`, found {', '.join(names)}")
    n = len(next(iter(groups.values())))
    for channel, steps in groups.items():
        require(
            len(steps) > 0, f"`frame` must have columns for the channel `{channel}`, found {', '.join(names)}"
        )
        require(len(steps) == n, f"`channels` must have {n} columns each, got {len(steps)} for `{channel}`")
        for name in steps:
            require(name in names, f"`frame` must have a column `{name}`, found {', '.join(names)}")


def _steps(table: nw.DataFrame[Any], names: Sequence[str], column_of: Callable[[Any], Column]) -> np.ndarray:
    return encode([ColumnEncoding(name) for name in names], [column_of(table[name]) for name in names])


def _keys(column: Column, name: str | None) -> np.ndarray:
    words: Words = as_words(column)
    missing = np.flatnonzero(words.codes < 0)
    require(len(missing) == 0, f"`frame`, row {missing[:1].sum()}: column `{name}` must not be empty")
    return np.array([words.keys[code] for code in words.codes])
