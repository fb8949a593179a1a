"""Checks and small helper functions of `Sequences`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seq2tens._checks import ArgumentError, require


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view; the array itself remains writable."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_floating(name: str, array: Any) -> np.ndarray:
    """Convert to a floating-point array: integers and booleans become float64, other types are an error."""
    array = np.asarray(array)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}")
    return array


def offsets_of(lengths: Any) -> np.ndarray:
    """Return the start of each sequence, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)


def locate(offsets: np.ndarray, step: int) -> tuple[int, int]:
    """Return the sequence of a packed step, and its position in this sequence."""
    sequence = int(np.searchsorted(offsets, step, side="right")) - 1
    return sequence, int(step - offsets[sequence])


def check_values(values: Any) -> np.ndarray:
    """Require floats `(total_steps, channels)`."""
    values = np.asarray(values)
    if values.dtype.kind != "f":
        raise TypeError(f"`values` must have a floating-point dtype, got {values.dtype}")
    require(
        values.ndim == 2,
        f"`values` must have 2 axes (total_steps, channels), got {values.ndim} with shape {values.shape}",
    )
    require(values.shape[1] >= 1, f"`values` must have at least one channel, got shape {values.shape}")
    return values


def check_offsets(offsets: Any, total: int) -> np.ndarray:
    """Require integers from 0 to `total` that do not decrease."""
    offsets = np.asarray(offsets)
    if offsets.dtype.kind not in "iu":
        raise TypeError(f"`offsets` must be integers, got dtype {offsets.dtype}")
    require(
        offsets.ndim == 1 and len(offsets) > 0, f"`offsets` must have shape (n + 1,), got {offsets.shape}"
    )
    offsets = offsets.astype(np.int64)
    require(int(offsets[0]) == 0, f"`offsets` must begin with 0, got {offsets[0]}")
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if len(falls):
        i = int(falls[0]) + 1
        raise ArgumentError(
            f"`offsets` must not decrease, got {offsets[i]} after {offsets[i - 1]} at index {i}"
        )
    require(
        int(offsets[-1]) == total,
        f"`offsets` must end with {total} (the steps of `values`), got {offsets[-1]}",
    )
    return offsets


def check_finite(values: np.ndarray, offsets: np.ndarray) -> None:
    """Require finite values or NaN (missing)."""
    infinite = np.isinf(values)
    if infinite.any():
        step, channel = np.argwhere(infinite)[0]
        sequence, inside = locate(offsets, step)
        raise ArgumentError(
            f"`values` must be finite, or NaN where missing, got {values[step, channel]} "
            f"at sequence {sequence}, step {inside}, channel {channel}"
        )


def check_times(times: Any, offsets: np.ndarray) -> np.ndarray:
    """Require one finite time per step; times must not decrease within a sequence."""
    times = as_floating("times", times).astype(np.float64, copy=False)
    total = int(offsets[-1])
    require(
        times.shape == (total,), f"`times` must have shape (total_steps,) = ({total},), got {times.shape}"
    )
    not_finite = np.flatnonzero(~np.isfinite(times))
    if len(not_finite):
        sequence, step = locate(offsets, not_finite[0])
        raise ArgumentError(
            f"`times` must be finite, got {times[not_finite[0]]} at sequence {sequence}, step {step}"
        )
    _check_forward(times, offsets)
    return times


def _check_forward(times: np.ndarray, offsets: np.ndarray) -> None:
    back = np.diff(times, prepend=times[:1]) < 0
    starts = offsets[:-1]
    back[starts[starts < len(times)]] = False
    if back.any():
        step = int(np.flatnonzero(back)[0])
        sequence, inside = locate(offsets, step)
        raise ArgumentError(
            f"`times` must not decrease within a sequence, got {times[step]} after {times[step - 1]} "
            f"at sequence {sequence}, step {inside}"
        )


def check_static(static: Any, n: int) -> np.ndarray:
    """Require one row of features per sequence, finite or NaN (unknown)."""
    static = as_floating("static", static)
    require(
        static.ndim == 2 and len(static) == n,
        f"`static` must have shape (sequences, features) = ({n}, k), got {static.shape}",
    )
    if np.isinf(static).any():
        row, feature = np.argwhere(np.isinf(static))[0]
        raise ArgumentError(
            f"`static` must be finite, or NaN where unknown, got {static[row, feature]} "
            f"at sequence {row}, feature {feature}"
        )
    return static


def check_cube(name: str, X: Any, axes: str) -> np.ndarray:
    """Require numbers with three axes."""
    X = as_floating(name, X)
    require(X.ndim == 3, f"`{name}` must have 3 axes {axes}, got {X.ndim} with shape {X.shape}")
    return X


def check_columns(owner: Any, n: int, n_channels: int, of: str) -> None:
    """Require one label and one id per sequence, and a name per channel, if a frozen dataclass has any."""
    for name in ("labels", "ids"):
        if (column := getattr(owner, name)) is not None:
            array = np.asarray(column)
            require(array.shape == (n,), f"`{name}` must have shape (sequences,) = ({n},), got {array.shape}")
            object.__setattr__(owner, name, array)
    require(
        owner.channels is None or len(owner.channels) == n_channels,
        f"`channels` must name the {n_channels} channels of `{of}`, got {owner.channels}",
    )


def check_list(name: str, arrays: Sequence[np.ndarray], axes: str = "(time, channels)") -> None:
    """Require matrices with the same number of channels."""
    require(
        len(arrays) > 0,
        f"`{name}` must hold at least one sequence (it gives the number of channels), got none",
    )
    axis = 1 if axes.endswith("channels)") else 0
    for i, array in enumerate(arrays):
        require(
            array.ndim == 2,
            f"`{name}[{i}]` must have 2 axes {axes}, got {array.ndim} with shape {array.shape}",
        )
        require(
            array.shape[axis] == arrays[0].shape[axis],
            f"`{name}[{i}]` must have {arrays[0].shape[axis]} channels like `{name}[0]`, "
            f"got {array.shape[axis]}{_swapped(arrays, 1 - axis, axes)}",
        )


def _swapped(arrays: Sequence[np.ndarray], axis: int, axes: str) -> str:
    """Return a hint if all arrays have the same number of steps, as if their axes were swapped."""
    sizes = {array.shape[axis] if array.ndim == 2 else -1 for array in arrays}
    if len(sizes) > 1:
        return ""
    return f"; all have {sizes.pop()} steps: the axes must be {axes}, transpose the arrays if they are not"


def join_times(times: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Pack the times of each sequence, which must have one per step."""
    require(len(times) == len(arrays), f"`times` must have {len(arrays)} entries, got {len(times)}")
    clocks = [as_floating(f"times[{i}]", clock) for i, clock in enumerate(times)]
    for i, (clock, array) in enumerate(zip(clocks, arrays, strict=True)):
        require(
            clock.shape == (len(array),), f"`times[{i}]` must have shape ({len(array)},), got {clock.shape}"
        )
    return np.concatenate(clocks)


def row_numbers(rows: Any, n: int) -> np.ndarray:
    """Convert any index to row numbers 0..n-1."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    index = np.atleast_1d(np.asarray(rows))
    require(index.ndim == 1, f"`rows` must be an integer, a slice or have one axis, got shape {index.shape}")
    if index.dtype == bool:
        require(len(index) == n, f"`rows` as a mask must have {n} entries, got {len(index)}")
        return np.flatnonzero(index)
    if index.size and index.dtype.kind not in "iu":
        raise TypeError(f"`rows` must be integers or booleans, got dtype {index.dtype}")
    out_of_range = index[(index < -n) | (index >= n)]
    if out_of_range.size:
        raise IndexError(f"`rows` must lie in {-n}..{n - 1} ({n} sequences), got {out_of_range[0]}")
    index = index.astype(np.int64)
    return np.where(index < 0, index + n, index)
