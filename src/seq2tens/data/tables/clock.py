"""Conversion of times of any type to numbers."""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Float, Int, Shaped

# Nanoseconds per unit.
UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
# Integers up to this bound are exact as doubles.
EXACT = 2**53
DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?(?:Z|([+-])(\d\d):?(\d\d))?")


def is_date(times: Shaped[np.ndarray, " rows"]) -> bool:
    """Whether times are dates or durations, which are counted in a unit."""
    return times.dtype.kind in "mM"


def as_numbers(
    times: Shaped[np.ndarray, " steps"], offsets: Int[np.ndarray, " bounds"], unit: str
) -> Float[np.ndarray, " steps"]:
    """Convert times, in the order of steps, to numbers.

    Dates are counted from the first step of their sequence, in `unit`. Integers that are too large for a
    double, such as nanoseconds since 1970, are also counted from there. Other numbers are not changed.
    """
    if is_date(times):
        ticks = times.view(np.int64)
        passed = _since_start(ticks, offsets) if times.dtype.kind == "M" else ticks
        return passed * UNITS[np.datetime_data(times.dtype)[0]] / UNITS[unit]
    if times.dtype.kind in "iu" and len(times) and max(abs(int(times.min())), abs(int(times.max()))) > EXACT:
        return _since_start(times, offsets).astype(np.float64)
    return times.astype(np.float64, copy=False)


def _since_start(times: Int[np.ndarray, " steps"], offsets: Int[np.ndarray, " bounds"]) -> np.ndarray:
    lengths = np.diff(offsets)
    return times - np.repeat(times[offsets[:-1][lengths > 0]], lengths[lengths > 0])


def parse_date(text: str) -> np.datetime64:
    """Parse a date of ISO 8601; one with an offset is converted to UTC.

    Examples are `2024-05-01`, `2024-05-01 13:30:00.25` and `2024-05-01T13:30Z`. Anything else is a
    ValueError.
    """
    if (match := DATE.fullmatch(text.strip())) is None:
        raise ValueError(text)
    day, time, sign, hours, minutes = match.groups()
    moment = np.datetime64(f"{day}T{time or '00:00'}", "ns")
    offset = np.timedelta64(60 * int(hours) + int(minutes), "m") if sign else np.timedelta64(0, "m")
    return moment + offset if sign == "-" else moment - offset
