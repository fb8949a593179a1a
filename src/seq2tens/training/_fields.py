"""Checks of settings that come from people and from files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from seq2tens._checks import require

T = TypeVar("T")


def between(name: str, value: float, low: float, high: float, *, low_included: bool = False) -> None:
    """Require a number in the interval; the upper end never belongs to it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{name}` must be a number, got {type(value).__name__}")
    inside = low < value < high or (low_included and value == low)
    bracket = "[" if low_included else "("
    require(inside, f"`{name}` must lie in {bracket}{low}, {high}), got {value}")


def from_fields(cls: type[T], data: Mapping[str, Any], name: str) -> T:
    """Build a dataclass from JSON data; a key that it does not know is an error."""
    if not isinstance(data, Mapping):
        raise TypeError(f"`{name}` must be a mapping, got {type(data).__name__}")
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    known = {field.name for field in fields}
    unknown = sorted(set(data) - known)
    require(not unknown, f"`{name}` must only have the keys {sorted(known)}, got also {unknown}")
    needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    missing = sorted(needed - set(data))
    require(not missing, f"`{name}` must have the keys {sorted(needed)}, got none for {missing}")
    return cls(**data)
