"""Prepare all stays of PhysioNet 2012 for a network, from files to channels, compared with pandas.

SEQ2TENS_DATA=/path/to/data python -m benchmarks.stays
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.registry import Case, Work
from benchmarks.run import measure, table
from seq2tens.data import Preparation, physionet2012

# pandas processes the first of the three files, and its time is scaled.
SHARE = 1 / 3


def stages() -> Work:
    """Read and split the stays, compute statistics of the training part, and prepare all three parts."""

    def work() -> list[object]:
        stays = physionet2012.load()
        preparation = Preparation(since_observed=True).fit(stays.train.sequences)
        parts = (stays.train, stays.validation, stays.test)
        return [preparation.transform(part.sequences) for part in parts]

    return work


def with_pandas() -> Work:
    """One row per time, filled forward, with masks and times since observation; files are read in advance."""
    with np.load(Path(os.environ["SEQ2TENS_DATA"], "physionet2012", "physionet_a.npz")) as file:
        entries = pd.DataFrame({key: file[key] for key in ("record", "minute", "param", "value")})
    series = entries[(entries.param >= 5) & (entries.value != -1)]

    def work() -> object:
        values = series.pivot_table(index=["record", "minute"], columns="param", values="value")
        minute = values.index.get_level_values("minute").to_numpy()
        record = values.index.get_level_values("record")
        seen = values.notna()
        last = seen.mul(minute, axis=0).where(seen).groupby(record).ffill().groupby(record).shift()
        first = pd.Series(minute, values.index).groupby(record).transform("first")
        since = -last.apply(lambda column: column.fillna(first)).sub(minute, axis=0)
        scaled = (values - values.mean()) / values.std()
        filled = scaled.groupby(record).ffill().fillna(0.0)
        return pd.concat([filled, seen.astype("float32"), (since - since.mean()) / since.std()], axis=1)

    return work


def main() -> None:
    """Print the times."""
    case = Case(
        "stays",
        "12 000 stays",
        "seq2tens",
        {"seq2tens": stages, "pandas": with_pandas},
        shares={"pandas": SHARE},
    )
    print(table(measure(case, seconds=0)))


if __name__ == "__main__":
    main()
