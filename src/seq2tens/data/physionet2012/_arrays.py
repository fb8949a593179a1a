"""The packed layout: three `.npz` files with one entry per measurement, and the names of the parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seq2tens._checks import require
from seq2tens.data.physionet2012._measurements import NUMBERS, Measurements, Records, gather
from seq2tens.data.readers._text import malformed, naming, numbered_lines

PARAMETERS = "physionet_params.txt"
DEATH = 5


def is_packed(folder: Path) -> bool:
    """Whether the folder has this layout."""
    return (folder / PARAMETERS).is_file()


def read_packed(folder: Path, letter: str = "?") -> Records:
    """The stays of the folder, all or those of one set."""
    numbers = _numbers(folder / PARAMETERS)
    files = sorted(folder.glob(f"physionet_{letter}.npz"))
    if not files:
        wanted = "s physionet_a.npz, physionet_b.npz, …" if letter == "?" else f" physionet_{letter}.npz"
        raise malformed(folder, f"must hold the file{wanted}, got none")
    return Records.concatenate([_read_file(path, numbers) for path in files])


def _numbers(path: Path) -> np.ndarray:
    """The number of each parameter of the file."""
    names = list(numbered_lines(path))
    for line, name in names:
        if name not in NUMBERS:
            raise malformed(path, f"must name parameters of the challenge, got {name!r}", line)
    return np.array([NUMBERS[name] for _, name in names])


def _read_file(path: Path, numbers: np.ndarray) -> Records:
    with naming(path), np.load(path, allow_pickle=False) as file:
        missing = {"record", "minute", "param", "value", "outcomes"} - set(file.files)
        require(
            not missing, f"must have the array `{min(missing, default='')}`, found {', '.join(file.files)}"
        )
        record, minute, parameter = (file[name].astype(np.int64) for name in ("record", "minute", "param"))
        value, outcomes = file["value"], file["outcomes"]
        largest = parameter.max(initial=0)
        require(
            largest < len(numbers), f"`param` must lie in 0..{len(numbers) - 1} ({PARAMETERS}), got {largest}"
        )
        without = np.setdiff1d(record, outcomes[:, 0])
        require(len(without) == 0, f"`outcomes` must have a row for record {without[:1].sum()}, got none")
        deaths = dict(zip(outcomes[:, 0].tolist(), outcomes[:, DEATH].tolist(), strict=True))
        return gather(Measurements(record, minute, numbers[parameter], value), deaths)
