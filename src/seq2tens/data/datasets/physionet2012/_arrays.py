"""The packed layout: three `.npz` files with one entry per measurement, and the names of the parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Int

from seq2tens._checks import require
from seq2tens.data import _packed
from seq2tens.data.datasets.physionet2012._measurements import (
    HORIZON,
    NUMBERS,
    Measurements,
    Pick,
    Records,
    gather,
)
from seq2tens.data.readers._text import malformed, naming, numbered_lines
from seq2tens.data.readers._zip import read_arrays

PARAMETERS = "physionet_params.txt"
DEATH = 5


def is_packed(folder: Path) -> bool:
    """Whether the folder has this layout."""
    return (folder / PARAMETERS).is_file()


def read_packed(folder: Path, letter: str = "?", pick: Pick = "mean") -> Records:
    """Read the stays of the folder, all or those of one set."""
    numbers = _numbers(folder / PARAMETERS)
    files = sorted(folder.glob(f"physionet_{letter}.npz"))
    if not files:
        names = "s physionet_a.npz, physionet_b.npz, …" if letter == "?" else f" physionet_{letter}.npz"
        raise malformed(folder, f"must hold the file{names}, got none")
    return Records.concatenate([_read_file(path, numbers, pick) for path in files])


def _numbers(path: Path) -> np.ndarray:
    """Read the number of each parameter of the file."""
    names = list(numbered_lines(path))
    for line, name in names:
        if name not in NUMBERS:
            raise malformed(path, f"must name parameters of the challenge, got {name!r}", line)
    return np.array([NUMBERS[name] for _, name in names])


def _read_file(path: Path, numbers: np.ndarray, pick: Pick) -> Records:
    with naming(path):
        file = read_arrays(path, ("record", "minute", "param", "value", "outcomes"))
        record, minute, parameter = (_integers(name, file[name]) for name in ("record", "minute", "param"))
        value, outcomes = _packed.as_floating("value", file["value"]), _integers("outcomes", file["outcomes"])
        for name in ("record", "minute", "param", "value"):
            shape, expected = file[name].shape, (record.size,)
            require(shape == expected, f"`{name}` must have shape (entries,) = {expected}, got {shape}")
        _check_range("param", parameter, len(numbers), f" ({PARAMETERS})")
        _check_range("minute", minute, HORIZON)
        deaths = _deaths(outcomes)
        absent = np.setdiff1d(record, outcomes[:, 0])
        require(len(absent) == 0, f"`outcomes` must have a row for record {absent[:1].sum()}, got none")
        return gather(Measurements(record, minute, numbers[parameter], value), deaths, pick=pick)


def _integers(name: str, array: np.ndarray) -> Int[np.ndarray, "*shape"]:
    require(array.dtype.kind in "iu", f"`{name}` must be integers, got dtype {array.dtype}")
    return array.astype(np.int64)


def _check_range(name: str, array: Int[np.ndarray, " entries"], end: int, note: str = "") -> None:
    """Require numbers in 0..end-1; as an index, a negative one would count from the end."""
    out_of_range = array[(array < 0) | (array >= end)]
    require(len(out_of_range) == 0, f"`{name}` must lie in 0..{end - 1}{note}, got {out_of_range[:1].sum()}")


def _deaths(outcomes: Int[np.ndarray, "stays columns"]) -> dict[int, int]:
    """Return whether the patient died (1) or not (0), by record."""
    shape = outcomes.shape
    require(
        len(shape) == 2 and shape[1] > DEATH, f"`outcomes` must have {DEATH + 1} columns, got shape {shape}"
    )
    _check_range("outcomes", outcomes[:, DEATH], 2)
    return dict(zip(outcomes[:, 0].tolist(), outcomes[:, DEATH].tolist(), strict=True))
