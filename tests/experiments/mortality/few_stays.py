"""A few of the real stays, as packed arrays in a folder of their own."""

import os
from pathlib import Path

import numpy as np


def few_stays(folder, each=12):
    """So many stays of either outcome in each part of the published split, all from the first set.

    A test that calls this is marked with `data("physionet2012/split.npz")`.
    """
    source, home = Path(os.environ["SEQ2TENS_DATA"], "physionet2012"), folder / "physionet2012"
    home.mkdir(parents=True)
    with np.load(source / "physionet_a.npz") as file:
        found = dict(file)
    with np.load(source / "split.npz") as file:
        split = dict(file)
    records, died = found["outcomes"][:, 0], found["outcomes"][:, -1]
    chosen = {
        part: np.concatenate([rows[np.isin(rows, records[died == outcome])][:each] for outcome in (0, 1)])
        for part, rows in split.items()
    }
    kept = np.concatenate(list(chosen.values()))
    inside = np.isin(found["record"], kept)
    packed = {name: found[name][inside] for name in ("record", "minute", "param", "value")}
    np.savez(home / "physionet_a.npz", **packed, outcomes=found["outcomes"][np.isin(records, kept)])
    np.savez(home / "split.npz", **chosen)
    (home / "physionet_params.txt").write_text((source / "physionet_params.txt").read_text())
    return folder
