"""Roles of the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seq2tens._checks import choice
from seq2tens._moved import moved_attributes
from seq2tens.data.tables.clock import UNITS
from seq2tens.data.tables.encoding import Encoding

NO_LABELS = "; `label=None` reads a table without labels"
ONE_SEQUENCE = "; `id=None` reads the whole table as one sequence"
# Case-insensitive names, such as `ID`.
STANDARD = ("id", "time", "label")
# Names of the columns in which pandas stores row numbers: in `.csv` files, when these are read again, in
# `.parquet` files, and after `reset_index`.
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__|index")
Fail = Callable[[str], Exception]


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table; the names `id`, `time` and `label` are case-insensitive.

    Row numbers, which pandas writes as a column, are not a channel unless `channels` names them; `channels`
    and `index_columns` of the result list both kinds.

    Attributes:
        id: the column that identifies the sequences; None: the whole table is one sequence.
        time: the column of times, numbers or dates. With None, or without a column `"time"`, the steps are in
            the order of the rows.
        label: the column of labels; None: no labels.
        channels: the columns of channels; None: all remaining columns.
        label_optional: read a table without the column `label` as one without labels.
        static: columns of features that do not change within a sequence.
        categories: categorical columns, of strings or of numeric codes.
        unit: unit of dates and durations, one of ns, us, ms, s, min, h, d.
        encoding: how the columns became channels in training; if given, it selects them.
    """

    id: str | None = "id"
    time: str | None = "time"
    label: str | None = "label"
    channels: tuple[str, ...] | None = None
    label_optional: bool = False
    static: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    unit: str = "s"
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        choice("unit", self.unit, tuple(UNITS))

    __getattr__ = moved_attributes({"among": "resolve"})

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Columns:
        """Restore columns from their `state()`."""
        encoding = state.get("encoding")
        lists = {name: state.get(name) for name in ("channels", "static", "categories")}
        tuples = {name: tuple(names) for name, names in lists.items() if names is not None}
        return cls(**{**state, **tuples, "encoding": encoding and Encoding.from_state(encoding)})

    def state(self) -> dict[str, Any]:
        """Return JSON data for `from_state`."""
        return {**asdict(self), "encoding": self.encoding and self.encoding.state()}

    def named(self) -> list[str]:
        """Return the names of all columns that must be present."""
        roles = [name for name in (self.id, self.time, self.label) if name is not None]
        return [*roles, *(self.channels or ()), *self.static]

    def resolve(
        self, names: Sequence[str], fail: Fail, index: Collection[str] = (), *, ids_optional: bool = False
    ) -> Columns:
        """Resolve the roles for a table with these columns; those in `index` are row numbers."""
        if len(set(names)) < len(names):
            repeated = next(name for i, name in enumerate(names) if name in names[:i])
            raise fail(f"must have distinct column names, got `{repeated}` twice")
        present = self._as_written(names, fail)._chosen()
        if ids_optional and present.id == "id" and "id" not in names:
            present = replace(present, id=None)
        for name in present.named():
            if name not in names:
                hint = {self.label: NO_LABELS, self.id: ONE_SEQUENCE}.get(name, "")
                raise fail(f"must have a column `{name}`, found {', '.join(names)}{hint}")
        assigned = {*present.named(), *index}
        channels = present.channels or tuple(name for name in names if name not in assigned)
        if not channels:
            raise fail(f"must have a column for a channel, found {', '.join(names)}")
        unknown = [name for name in self.categories if name not in (*channels, *present.static)]
        if unknown:
            raise fail(
                f"must have a channel or static feature `{unknown[0]}` to read as categories, found none"
            )
        return replace(present, channels=channels)

    def _as_written(self, names: Sequence[str], fail: Fail) -> Columns:
        """Return the standard names as written in the table, None for optional columns that are absent."""
        id, time, label = (_ignoring_case(name, names, fail) for name in (self.id, self.time, self.label))
        time = None if time == "time" and time not in names else time
        label = None if self.label_optional and label not in names else label
        return replace(self, id=id, time=time, label=label)

    def _chosen(self) -> Columns:
        if self.encoding is None:
            return self
        channels = tuple(column.name for column in self.encoding.columns)
        static = self.static and tuple(column.name for column in self.encoding.static)
        return replace(self, channels=channels, static=static)


def index_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold row numbers, according to their names."""
    return tuple(name for name in names if INDEX.fullmatch(name))


def _ignoring_case(name: str | None, names: Sequence[str], fail: Fail) -> str | None:
    if name not in STANDARD or name in names:
        return name
    alike = [other for other in names if other.lower() == name]
    if len(alike) > 1:
        raise fail(
            f"must have one column `{name}`, found {' and '.join(alike)}; pass the name of the right one"
        )
    return alike[0] if alike else name
