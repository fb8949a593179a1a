"""Cells, the units of an experiment, as pure data. Declaring them touches no files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from typing_extensions import Self

from seq2tens import _checks as check
from seq2tens._checks import from_fields


@dataclass(frozen=True)
class AnyCell:
    """The base class of cells; all fields are strings or integers, and together they determine the key."""

    experiment: str
    # Fields that were added when tables existed already: at their defaults they are not part of the key.
    LATER: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "str" and not isinstance(value, str):
                raise TypeError(f"`{field.name}` must be a string, got {type(value).__name__}")
            if field.type == "int":
                if isinstance(value, bool) or not isinstance(value, int):
                    raise TypeError(f"`{field.name}` must be an integer, got {type(value).__name__}")
                check.require(value >= 0, f"`{field.name}` must be at least 0, got {value}")

    @property
    def key(self) -> str:
        """The identifier of the cell in its table: a hash of its fields."""
        defaults = {field.name: field.default for field in fields(self) if field.name in self.LATER}
        parts = {name: value for name, value in asdict(self).items() if defaults.get(name) != value}
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """The cell as JSON data."""
        return asdict(self)

    @property
    def columns(self) -> dict[str, Any]:
        """The first columns of its row: the key, and all fields except the name of the experiment."""
        values = asdict(self)
        del values["experiment"]
        return {"key": self.key, **values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Restore a cell from the result of `to_dict`; an unknown key is an error."""
        return from_fields(cls, data, "cell")
