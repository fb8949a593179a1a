"""Errors in arguments, and checks of plain values. Nothing heavy is imported, to keep the shell fast."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class ArgumentError(ValueError):
    """Raised for an invalid argument, to distinguish a mistake of the caller from any other `ValueError`."""


def require(condition: bool, message: str) -> None:
    """Raise `ArgumentError(message)` unless the condition holds."""
    if not condition:
        raise ArgumentError(message)


def positive_int(name: str, value: int) -> None:
    """Require an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be an integer, got {type(value).__name__}")
    if value < 1:
        raise ArgumentError(f"`{name}` must be at least 1, got {value}")


def choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Require one of the allowed values."""
    if value not in allowed:
        known = [text for text in allowed if isinstance(text, str)]
        suggestion = did_you_mean(value, known)
        raise ArgumentError(
            f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}{suggestion}"
        )


def did_you_mean(value: object, known: Iterable[str], key: Callable[[str], str] = str) -> str:
    """Return the end of a message that suggests the closest known name by `key`, empty if none is close."""
    nearest = {key(name).casefold(): name for name in known}
    matches = difflib.get_close_matches(key(str(value)).casefold(), list(nearest), n=1)
    return f"; did you mean {nearest[matches[0]]!r}?" if matches else ""
