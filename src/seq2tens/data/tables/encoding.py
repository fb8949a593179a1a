"""Encoding of columns of numbers and strings as channels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from seq2tens._checks import ArgumentError, require

# Up to this many categories get a channel each; more are hashed to this many channels of +1 and -1.
MAX_WIDTH = 16


class Words(NamedTuple):
    """A categorical column: row i has the value `keys[codes[i]]`, and is missing where the code is -1."""

    codes: Int[np.ndarray, " rows"]
    keys: list[Any]

    @classmethod
    def of_runs(cls, keys: Iterable[Any], lengths: Int[np.ndarray, " runs"]) -> Words:
        """Create from the key and the length of each run of equal rows; None and NaN are missing."""
        numbers: dict[Any, int] = {}
        codes = [-1 if key is None or key != key else numbers.setdefault(key, len(numbers)) for key in keys]
        return cls(np.repeat(np.array(codes, dtype=np.int64), lengths), list(numbers))

    def as_text(self) -> Words:
        """Convert the keys to strings without surrounding whitespace."""
        texts = [_text(key) for key in self.keys]
        numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(numbers[text] for text in texts), -1])
        return Words(codes[self.codes], list(numbers))


Column = np.ndarray | Words


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes channels.

    Attributes:
        name: name of the column.
        categories: None for numbers. Otherwise the column is one-hot encoded with a channel for each; an
            unknown category is 0 in all channels.
        hashed: whether categories are hashed to patterns of +1 and -1 instead, known or not.
    """

    name: str
    categories: tuple[str, ...] | None = None
    hashed: bool = False

    @classmethod
    def learn(cls, name: str, column: Column, chosen: bool = False) -> ColumnEncoding:
        """Choose numbers, categories or, for many categories, hashes; `chosen` columns are categorical."""
        if chosen:
            column = as_words(column)
        if not isinstance(column, Words) or not column.keys:
            return cls(name)
        texts = sorted(column.as_text().keys)
        if not chosen:
            _check_words(name, texts)
        return cls(name, tuple(texts)) if len(texts) <= MAX_WIDTH else cls(name, (), hashed=True)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""
        if self.hashed:
            return tuple(f"{self.name}#{i}" for i in range(MAX_WIDTH))
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, column: Column) -> Float[np.ndarray, "rows channels"]:
        """Return the channels; all are NaN where the column is missing."""
        if self.categories is None and not self.hashed:
            return _numbers(self.name, column)[:, None]
        words = as_words(column).as_text()
        rows = [self._row(key) for key in words.keys]
        missing = np.full(len(self.channels), np.nan)
        return np.array([*rows, missing], dtype=np.float32)[words.codes]

    def _row(self, category: str) -> Sequence[float]:
        if self.hashed:
            digest = hashlib.blake2b(category.encode(), digest_size=MAX_WIDTH // 8).digest()
            bits = int.from_bytes(digest, "big")
            return [1.0 if bits >> i & 1 else -1.0 for i in range(MAX_WIDTH)]
        return [float(category == known) for known in self.categories or ()]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become channels, static columns become features, and dates become times.

    `unit` is the unit of dates and durations, None for numeric times.
    """

    columns: tuple[ColumnEncoding, ...]
    static: tuple[ColumnEncoding, ...] = ()
    unit: str | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of all channels."""
        return tuple(name for column in self.columns for name in column.channels)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all static features."""
        return tuple(name for column in self.static for name in column.channels)

    def renamed(self, names: Sequence[str]) -> Encoding | None:
        """Return the encoding for other column names in the same order; None if their number differs."""
        if len(names) != len(self.columns):
            return None
        columns = (replace(column, name=name) for column, name in zip(self.columns, names, strict=True))
        return replace(self, columns=tuple(columns))

    def state(self) -> dict[str, Any]:
        """Return JSON data for `from_state`."""
        columns, static = (
            [
                {**asdict(column), "categories": column.categories and list(column.categories)}
                for column in part
            ]
            for part in (self.columns, self.static)
        )
        return {"columns": columns, "static": static, "unit": self.unit}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoding:
        """Restore an encoding from its `state()`."""
        return cls(_restored(state["columns"]), _restored(state["static"]), state["unit"])


def learn(
    names: Sequence[str], columns: Sequence[Column], chosen: Sequence[str]
) -> tuple[ColumnEncoding, ...]:
    """Learn the encodings of columns; `chosen` are the names of categorical ones."""
    return tuple(
        ColumnEncoding.learn(name, column, name in chosen)
        for name, column in zip(names, columns, strict=True)
    )


def encode(
    encodings: Sequence[ColumnEncoding], columns: Sequence[Column]
) -> Float[np.ndarray, "rows channels"]:
    """Encode columns, and concatenate their channels."""
    pairs = zip(encodings, columns, strict=True)
    return np.concatenate([encoding.encode(column) for encoding, column in pairs], axis=1)


def as_words(column: Column) -> Words:
    """Convert a column to `Words`; every distinct number is a category."""
    if isinstance(column, Words):
        return column
    keys, codes = np.unique(column, return_inverse=True)
    known = keys == keys  # NaN comes last, once
    return Words(np.where(known[codes], codes, -1), keys[known].tolist())


def _restored(columns: Sequence[dict[str, Any]]) -> tuple[ColumnEncoding, ...]:
    return tuple(
        ColumnEncoding(
            column["name"],
            None if column["categories"] is None else tuple(column["categories"]),
            column["hashed"],
        )
        for column in columns
    )


def _text(key: Any) -> str:
    """Convert a key to a string; integers that a missing value has turned into floats stay integers."""
    return str(int(key) if isinstance(key, float) and key.is_integer() else key).strip()


def _numbers(name: str, column: Column) -> Float[np.ndarray, " rows"]:
    if isinstance(column, Words):
        if column.keys:
            raise ArgumentError(f"column `{name}` must hold numbers, got strings such as {column.keys[0]!r}")
        return np.full(len(column.codes), np.nan)
    if column.dtype.kind not in "iuf":
        raise ArgumentError(
            f"column `{name}` must hold numbers or strings, got {column.dtype}; only `time` may hold dates"
        )
    return column if column.dtype.kind == "f" else column.astype(np.float64)


def _check_words(name: str, texts: Sequence[str]) -> None:
    """Reject columns of strings that are probably not categories."""
    numbers = next((text for text in texts if _is_number(text)), None)
    require(
        numbers is None,
        f"column `{name}` holds the number {numbers!r} as text; make it a column of numbers, or name it in "
        "`categories` if it is categorical",
    )
    require(
        len(texts) <= MAX_WIDTH,
        f"column `{name}` holds {len(texts)} different strings, more than {MAX_WIDTH}; name it in "
        "`categories` if it is meant to be a channel, or name the `channels`",
    )


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False
