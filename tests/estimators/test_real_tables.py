"""Real data in every form in which people keep them: the same predictions to the last bit."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from seq2tens.data import Columns, Labelled, Sequences, from_frame, load_dataset, read, to_aeon
from seq2tens.estimators import FCNClassifier, RandomLS2TClassifier

WRITERS = {".csv": pd.DataFrame.to_csv, ".csv.gz": pd.DataFrame.to_csv, ".parquet": pd.DataFrame.to_parquet}
START = pd.Timestamp("2024-03-31 01:59:59", tz="UTC")


def random_classifier():
    return RandomLS2TClassifier(n_blocks=2, random_state=0)


def network():
    return FCNClassifier(epochs=2, random_state=0)


def of_aeon(name):
    return [
        half[:: len(half) // 20] for half in load_dataset(name, archives=())
    ]  # aeon's, in double precision


def watch_recordings():
    """seglearn's exercises with a watch, a few and thinned out; found without importing the package."""
    found = importlib.util.find_spec("seglearn")
    if found is None:
        pytest.skip("seglearn is not installed")
    recordings = np.load(Path(found.origin).parent / "data" / "watch_dataset.npy", allow_pickle=True).item()
    chosen = [np.flatnonzero(recordings["y"] == label)[:6] for label in range(4)]
    labelled = Labelled(
        Sequences.from_list([recordings["X"][i][::20] for i in np.concatenate(chosen)]),
        np.repeat(recordings["y_labels"][:4], 6),
    )
    return labelled[::2], labelled[1::2]


SETS = {
    "BasicMotions": lambda: of_aeon("BasicMotions"),
    "JapaneseVowels": lambda: of_aeon("JapaneseVowels"),
    "watch": watch_recordings,
}


def as_long(labelled):
    """A long table with a date for every step."""
    lengths = labelled.sequences.lengths
    steps = np.concatenate([np.arange(n) for n in lengths])
    values = {f"c{i}": column for i, column in enumerate(labelled.sequences.values.T)}
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(len(labelled)), lengths),
            "time": START + pd.to_timedelta(20 * steps, unit="ms"),
            **values,
            "label": np.repeat(labelled.labels, lengths),
        }
    )


def as_wide(labelled):
    """A frame of polars, one row per sequence."""
    longest = labelled.sequences.lengths.max()
    cube = np.full((len(labelled), labelled.sequences.n_channels, longest), np.nan)
    for row, x in zip(cube, to_aeon(labelled.sequences), strict=True):
        row[:, : x.shape[1]] = x
    steps = {f"c{c}_{t}": cube[:, c, t] for c in range(cube.shape[1]) for t in range(longest)}
    return pl.DataFrame({"id": np.arange(len(labelled)), **steps, "label": labelled.labels})


def clocked(labelled):
    """The sequences with the times of `as_long`, made by hand."""
    sequences = labelled.sequences
    steps = np.arange(len(sequences.values)) - sequences.starts
    return Sequences(sequences.values, sequences.offsets, 20_000_000 * steps / 10**9)


def long_forms(folder, halves, **how):
    """Train and test in each form of a long table."""
    columns = Columns(label_optional=True, **how)
    names = ("train", "test")
    for suffix, write in WRITERS.items():
        for half, name in zip(halves, names, strict=True):
            write(as_long(half), folder / f"{name}{suffix}", index=False)
    yield "pandas", [from_frame(as_long(half), **how) for half in halves]
    yield "polars", [from_frame(pl.from_pandas(as_long(half)), **how) for half in halves]
    for suffix in WRITERS:
        yield suffix, [read(folder / f"{name}{suffix}", columns) for name in names]


@pytest.mark.parametrize("make", [random_classifier, network])
@pytest.mark.parametrize("name", SETS)
def test_long_tables_with_dates(tmp_path, name, make):
    halves = SETS[name]()
    train, test = halves
    expected = make().fit(clocked(train), train.labels).predict_proba(clocked(test))
    for form, (one, other) in long_forms(tmp_path, halves):
        assert make().fit(one).predict_proba(other).tobytes() == expected.tobytes(), form
    model = make().fit(as_long(train))
    assert model.predict_proba(pl.from_pandas(as_long(test))).tobytes() == expected.tobytes()


@pytest.mark.parametrize("make", [random_classifier, network])
@pytest.mark.parametrize("name", SETS)
def test_tables_without_times(tmp_path, name, make):
    halves = SETS[name]()
    train, test = halves
    expected = make().fit(train.sequences, train.labels).predict_proba(test.sequences)
    channels = tuple(f"c{i}" for i in range(train.sequences.n_channels))
    wide = [from_frame(as_wide(half), wide=True) for half in halves]
    for form, (one, other) in (*long_forms(tmp_path, halves, time=None, channels=channels), ("wide", wide)):
        assert make().fit(one).predict_proba(other).tobytes() == expected.tobytes(), form
