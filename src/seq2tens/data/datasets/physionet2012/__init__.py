"""The stays of the PhysioNet 2012 challenge: 48 hours in intensive care, and in-hospital death."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from seq2tens._checks import choice, require
from seq2tens.data.datasets._folders import dataset_folder
from seq2tens.data.datasets.physionet2012._arrays import is_packed, read_packed
from seq2tens.data.datasets.physionet2012._grid import GRID_CHANNELS, grid
from seq2tens.data.datasets.physionet2012._measurements import CHANNELS, STATIC, Pick, Records, Skipped
from seq2tens.data.datasets.physionet2012._text import read_text
from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import naming
from seq2tens.data.readers._zip import read_arrays

__all__ = [
    "CHANNELS",
    "GRID_CHANNELS",
    "LATER_SPLITS",
    "STATIC",
    "Records",
    "Skipped",
    "Stays",
    "grid",
    "load",
    "load_set",
    "read_text",
]

PARTS = ("train", "val", "test")
# Splits of Raindrop (Zhang et al., 2022), which most later work uses.
LATER_SPLITS = (1, 2, 3, 4, 5)
LATER_FILE = "raindrop_splits.npz"


@dataclass(frozen=True, eq=False)
class Stays:
    """The three parts of the data set.

    Each part has 37 channels (NaN: not measured; one step per distinct time; `times` in hours since
    admission), the static features `STATIC` (NaN: unknown), labels (1: died in hospital) and record numbers
    as `ids`. The weight at admission is the first value of the channel `Weight`.

    Attributes:
        train: stays to train on.
        validation: stays for model selection.
        test: stays to report results on.
        left_out: record numbers of stays without a time series.
        skipped: stays that could not be read, and why.
        repeated: number of values beyond the first of a parameter at one time; their mean is used.
    """

    train: Labelled
    validation: Labelled
    test: Labelled
    left_out: Int[np.ndarray, " stays"]
    skipped: tuple[Skipped, ...] = ()
    repeated: int = 0


def load(
    folder: str | Path | None = None,
    *,
    skip_bad: bool = False,
    split: int | str | Path | Mapping[str, Any] | None = None,
) -> Stays:
    """Read all stays and split them; from packed arrays or else from the challenge's text files.

    Args:
        folder: folder with the files, or with a folder `physionet2012` that holds them (default: the
            environment variable SEQ2TENS_DATA). Packed: `physionet_a.npz`, …, and `physionet_params.txt`.
            Text: folders `set-a`, … and, next to them, `Outcomes-a.txt`, ….
        skip_bad: skip text files that cannot be read; `skipped` of the result lists them with reasons.
        split: record numbers of `train`, `val` and `test`, as a mapping or an `.npz` file (default:
            `split.npz` in the folder, the split of the published baselines). A number from 1 to 5 selects one
            of the splits of Raindrop, used by later work, from `raindrop_splits.npz` in the folder.
    """
    home = dataset_folder(folder, "physionet2012")
    _check_layout(home)
    if isinstance(split, int):
        division = _read_later(home, split)
    else:
        division = _read_split(home / "split.npz" if split is None else split)
    return _parts(read_packed(home) if is_packed(home) else _read_sets(home, skip_bad), division)


def load_set(
    letter: str, folder: str | Path | None = None, *, skip_bad: bool = False, pick: Pick = "mean"
) -> Records:
    """Read one of the challenge's sets, `a`, `b` or `c`, without a split; otherwise like `load`.

    If a parameter has several values at one time, `pick` selects their `"mean"` or the `"last"`.
    """
    choice("letter", letter, ("a", "b", "c"))
    home = dataset_folder(folder, "physionet2012")
    _check_layout(home)
    if is_packed(home):
        return read_packed(home, letter, pick)
    require((home / f"set-{letter}").is_dir(), f"`folder` must hold set-{letter}, got {str(home)!r}")
    return _read_set(home / f"set-{letter}", skip_bad, pick)


def _sets(home: Path) -> list[Path]:
    return sorted(path for path in home.glob("set-?") if path.is_dir())


def _check_layout(home: Path) -> None:
    require(
        is_packed(home) or len(_sets(home)) > 0,
        "`folder` must hold physionet_params.txt with packed arrays, or text files in set-a, …, "
        f"got {str(home)!r}",
    )


def _read_sets(home: Path, skip_bad: bool) -> Records:
    """Read the text files of all sets."""
    return Records.concatenate([_read_set(path, skip_bad) for path in _sets(home)])


def _read_set(path: Path, skip_bad: bool, pick: Pick = "mean") -> Records:
    outcomes = path.parent / f"Outcomes-{path.name[-1]}.txt"
    require(
        outcomes.is_file(),
        f"`folder` must hold {outcomes.name} next to {path.name}, got {str(path.parent)!r}",
    )
    return read_text(path, outcomes, skip_bad=skip_bad, pick=pick)


def _read_split(split: str | Path | Mapping[str, Any]) -> dict[str, Int[np.ndarray, " stays"]]:
    if isinstance(split, Mapping):
        require(set(PARTS) <= set(split), f"`split` must have {', '.join(PARTS)}, got {', '.join(split)}")
        division = {name: np.asarray(split[name]) for name in PARTS}
        for name, records in division.items():
            require(
                records.ndim == 1 and (records.size == 0 or records.dtype.kind in "iu"),
                f"`split` must have a list of record numbers as `{name}`, "
                f"got {records.dtype} of shape {records.shape}",
            )
        _check_apart(division)
        return division
    require(
        Path(split).is_file(),
        f"`split` must be a mapping or an .npz file with the record numbers of {', '.join(PARTS)}, "
        f"got {str(split)!r}, which does not exist",
    )
    with naming(Path(split)):
        return _read_split(read_arrays(Path(split), PARTS))


def _read_later(home: Path, number: int) -> dict[str, Int[np.ndarray, " stays"]]:
    """Read one of the splits of Raindrop."""
    choice("split", number, LATER_SPLITS)
    path = home / LATER_FILE
    require(path.is_file(), f"`split` {number} must be in {path}, which does not exist")
    with naming(path):
        arrays = read_arrays(path, tuple(f"{part}{number}" for part in PARTS))
        return _read_split({part: arrays[f"{part}{number}"] for part in PARTS})


def _check_apart(division: dict[str, Int[np.ndarray, " stays"]]) -> None:
    """Require that no stay is in two parts, which would leak information between them."""
    records, counts = np.unique(np.concatenate(list(division.values())), return_counts=True)
    twice = records[counts > 1]
    require(len(twice) == 0, f"`split` must name every stay once, got {twice[:1].sum()} more than once")


def _parts(records: Records, split: dict[str, Int[np.ndarray, " stays"]]) -> Stays:
    absent = {*records.left_out.tolist(), *(skipped.record for skipped in records.skipped)}
    train, validation, test = (_part(records.stays, name, split[name], absent) for name in PARTS)
    return Stays(train, validation, test, records.left_out, records.skipped, records.repeated)


def _part(stays: Labelled, name: str, records: np.ndarray, absent: set[int]) -> Labelled:
    """Return the stays of one part, in the order of the split."""
    rows = {record: row for row, record in enumerate(np.asarray(stays.ids).tolist())}
    missing = set(records.tolist()) - set(rows) - absent
    require(not missing, f"`split` must name stays of the folder, got {min(missing, default=0)} in `{name}`")
    return stays[[rows[record] for record in records.tolist() if record in rows]]
