"""Columns of tables that are no channels: numbers of rows, and second labels."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cli.shell import done, refused, run
from seq2tens.data import Columns, read

READERS = {".csv": pd.DataFrame.to_csv, ".parquet": pd.DataFrame.to_parquet}


def noise(n=20, steps=4):
    """A long table of noise, sorted by class: the number of a row tells the class."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(n), steps),
            "time": np.tile(np.arange(steps), n),
            "x": rng.normal(size=n * steps),
            "label": np.repeat(["a", "b"], n * steps // 2),
        }
    )


def squares(frame):
    """With an index that is no range, which Parquet keeps as a column."""
    return frame.set_index(np.arange(len(frame)) ** 2)


@pytest.mark.parametrize("suffix", READERS)
def test_the_index_that_pandas_writes_is_no_channel(tmp_path, suffix):
    path = tmp_path / f"noise{suffix}"
    READERS[suffix](squares(noise()), path)
    found = read(path)
    assert found.channels == ("x",)
    assert found.index_columns == {".csv": ("",), ".parquet": ("__index_level_0__",)}[suffix]
    assert found[:3].index_columns == found.index_columns
    np.testing.assert_array_equal(found.sequences.values[:, 0], noise()["x"])


def test_an_index_that_was_written_twice_is_no_channel(tmp_path):
    path = tmp_path / "noise.csv"
    noise().to_csv(path)
    pd.read_csv(path).to_csv(path)
    assert read(path).index_columns == ("", "Unnamed: 0")
    noise().reset_index().to_csv(path)
    assert read(path).channels == ("x",)


def test_an_index_with_a_name_is_no_channel_of_parquet(tmp_path):
    path = tmp_path / "noise.parquet"
    squares(noise()).rename_axis("row").to_parquet(path)
    found = read(path)
    assert (found.channels, found.index_columns) == (("x",), ("row",))
    noise().set_index(["id", "time"]).to_parquet(path)
    found = read(path)
    assert (found.channels, found.index_columns, len(found)) == (("x",), (), 20)


def test_an_index_can_be_asked_for(tmp_path):
    path = tmp_path / "noise.csv"
    noise().to_csv(path)
    found = read(path, Columns(channels=("", "x")))
    assert (found.channels, found.index_columns) == (("", "x"), ())


def test_a_second_label_is_warned_of(tmp_path):
    path = tmp_path / "noise.csv"
    frame = noise().assign(target=lambda table: (table["label"] == "b").astype(float))
    frame.to_csv(path, index=False)
    with pytest.warns(UserWarning, match="column `target` is read as a channel, but like a label"):
        read(path)
    assert read(path, Columns(channels=("x", "target"))).channels == ("x", "target")
    assert read(path, Columns(channels=("x",))).channels == ("x",)


def test_the_shell_tells_the_channels(tmp_path):
    path = tmp_path / "noise.csv"
    noise().to_csv(path)
    assert run("info", path).stderr == "seq2tens: channels are x, not ''; `--channel-columns` names others\n"
    assert run("info", path, "--channel-columns", "x").stderr == ""
    assert "1 (x)" in done("info", path)
    frame = noise().assign(target=lambda table: (table["label"] == "b").astype(float))
    frame.to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warning, channels = run("info", path).stderr.splitlines()
    assert warning.startswith("seq2tens: warning: column `target` is read as a channel, but like a label")
    assert channels == "seq2tens: channels are x, target; `--channel-columns` names others"


def test_a_table_of_nothing_but_an_index_is_refused(tmp_path):
    path = tmp_path / "noise.csv"
    noise().drop(columns="x").to_csv(path)
    assert refused("info", path) == f"{path}: must have a column for a channel, found , id, time, label"
