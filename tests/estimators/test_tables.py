"""People's tables in `fit`, `predict` and imputers, and the names that they keep."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from seq2tens.data import Labelled, Preparation, Sequences, from_frame
from seq2tens.estimators import (
    FCNClassifier,
    ForwardImputer,
    LinearImputer,
    MeanImputer,
    RandomLS2TClassifier,
    RandomLS2TRegressor,
    SequenceClassifier,
)
from seq2tens.explaining import explain

KINDS = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def watches(n=12, steps=6):
    """A long table with dates, words and booleans; two motions that words and numbers tell apart."""
    rng = np.random.default_rng(0)
    motion = np.repeat(np.where(np.arange(n) % 2, "run", "rest"), steps)
    start = pd.Timestamp("2024-03-31", tz="Europe/Berlin")
    return pd.DataFrame(
        {
            "id": np.repeat([f"w{i}" for i in range(n)], steps),
            "time": start + pd.to_timedelta(np.tile(np.arange(steps), n) * 1800, unit="s"),
            "beats": rng.normal(np.where(motion == "run", 120, 70), 5),
            "surface": rng.choice(["grass", "road"], size=n * steps),
            "worn": rng.random(n * steps) < 0.9,
            "label": motion,
        }
    )


def random_classifier():
    return RandomLS2TClassifier(n_blocks=2, random_state=0)


def network():
    return FCNClassifier(epochs=2, random_state=0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_long_table(kind):
    frame = KINDS[kind](watches())
    model = random_classifier().fit(frame)
    labelled = from_frame(watches())
    assert model.classes_.tolist() == ["rest", "run"]
    expected = random_classifier().fit(labelled.sequences, labelled.labels).predict_proba(labelled.sequences)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)
    np.testing.assert_array_equal(random_classifier().fit(labelled).predict_proba(labelled), expected)
    assert model.variable_names_ == ("beats", "surface=grass", "surface=road", "worn")
    # rows, columns and sequences in another order; a table to be predicted has no labels
    shuffled = KINDS[kind](watches().drop(columns="label").iloc[::-1].iloc[:, ::-1])
    np.testing.assert_array_equal(model.predict_proba(shuffled), expected[::-1])


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_frames(kind):
    parts = [part for _, part in watches().groupby("id", sort=False)]
    y = [part["label"].iloc[0] for part in parts]
    columns = ["beats", "surface", "worn"]
    if kind == "pandas":
        frames = [part.set_index("time")[columns] for part in parts]
    else:
        frames = [KINDS[kind](part[["time", *columns]]) for part in parts]
    found = random_classifier().fit(frames, y).predict_proba(frames)
    expected = random_classifier().fit(watches())
    np.testing.assert_array_equal(found, expected.predict_proba(watches()[["id", "time", *columns]]))


def test_a_category_that_training_has_not_seen():
    model = random_classifier().fit(watches())
    new = watches().assign(surface="ice")
    as_told = from_frame(new, like=from_frame(watches()))
    assert not as_told.sequences.values[:, 1:3].any()
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(as_told))


def test_what_was_learned_of_tables_is_saved(tmp_path):
    model = random_classifier().fit(watches())
    again = SequenceClassifier.load(model.save(tmp_path / "model") or tmp_path / "model")
    assert again.encoding_ == model.encoding_
    np.testing.assert_array_equal(again.predict_proba(watches()), model.predict_proba(watches()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_are_arrays(dtype):
    X = torch.randn(8, 2, 9, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = [0, 1] * 4
    expected = random_classifier().fit(X.double().numpy(), y).predict_proba(X.double().numpy())
    np.testing.assert_array_equal(random_classifier().fit(X, y).predict_proba(X), expected)
    np.testing.assert_array_equal(random_classifier().fit(list(X), y).predict_proba(list(X)), expected)


def test_tensors_are_doubted_as_arrays_are():
    with pytest.warns(UserWarning, match=r"`X` is read as sequences of 5 channels and 3 steps"):
        random_classifier().fit(torch.randn(4, 5, 3), [0, 1] * 2)


def test_labelled_data_in_cross_validation_and_regression():
    from sklearn.model_selection import cross_val_score

    labelled = from_frame(watches())
    assert len(cross_val_score(random_classifier(), labelled, labelled.labels, cv=2)) == 2
    y = np.arange(len(labelled), dtype=float)
    assert RandomLS2TRegressor(n_blocks=2, random_state=0).fit(labelled, y).predict(watches()).shape == (12,)


def test_names_in_explanations():
    static = pd.DataFrame({"id": [f"w{i}" for i in range(12)], "age": np.arange(12.0)})
    labelled = from_frame(watches(), static=static)
    model = network().fit(labelled)
    names = ("beats", "surface=grass", "surface=road", "worn", "time", "age")
    assert explain(model, labelled[0]).names == names
    bare = network().fit(watches())
    assert explain(bare, watches()[:6]).names == names[:-1]
    used = {
        channel
        for part in random_classifier().fit(labelled).explain(top=50)
        for f in part.filters
        for channel in f.channels
    }
    assert used <= {*names}
    assert "beats" in used


def test_names_of_a_preparation():
    sequences = Sequences(
        np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([0, 2]), np.zeros(2), np.ones((1, 1))
    )
    preparation = Preparation(since_observed=True).fit(sequences)
    assert preparation.names(["a", "b", "age"]) == (
        "a", "b", "observed a", "observed b", "since a", "since b", "time", "age",
    )  # fmt: skip
    assert preparation.names() == (
        "0", "1", "observed 0", "observed 1", "since 0", "since 1", "time", "static 0",
    )  # fmt: skip


GAPS = pd.DataFrame(
    {
        "id": ["b", "a", "b", "a", "b"],
        "time": [2.0, 0.0, 0.0, 1.0, 1.0],
        "warmth": [22.0, 1.0, 20.0, np.nan, np.nan],
        "count": [1, 2, 3, 4, 5],
        "place": ["in", "out", None, "out", "in"],
    }
)


@pytest.mark.parametrize("kind", KINDS)
def test_imputed_tables_are_what_they_were(kind):
    frame = KINDS[kind](GAPS)
    filled = LinearImputer().fit_transform(frame)
    assert type(filled) is type(frame)
    expected = KINDS[kind](GAPS.assign(warmth=[22.0, 1.0, 20.0, 1.0, 21.0]))
    if kind == "pandas":
        pd.testing.assert_frame_equal(filled, expected)
    else:
        assert filled.equals(expected)
    low, high = MeanImputer().fit(frame).predict_interval(frame)
    assert type(low) is type(high) is type(frame)


def test_an_imputed_frame_keeps_its_index():
    frame = GAPS.set_index(pd.Index([5, 3, 9, 1, 7], name="row")).astype({"warmth": "float32"})
    filled = LinearImputer().fit_transform(frame)
    pd.testing.assert_frame_equal(filled, frame.assign(warmth=np.float32([22, 1, 20, 1, 21])))


def test_whole_numbers_with_gaps_become_fractions():
    frame = pd.DataFrame({"id": [1, 1, 1], "n": pd.array([1, None, 4], dtype="Int64"), "m": [1, 2, 3]})
    filled = LinearImputer().fit_transform(frame)
    assert filled["n"].tolist() == [1, 2.5, 4]
    assert filled["m"].dtype == np.int64


def test_imputed_lists_of_frames_of_polars():
    parts = [pl.DataFrame({"time": [1, 0, 2], "x": [None, 0, 2]}), pl.DataFrame({"time": [0], "x": [7]})]
    first, second = LinearImputer().fit_transform(parts)
    assert first.equals(pl.DataFrame({"time": [1, 0, 2], "x": [1.0, 0.0, 2.0]}))
    assert second.equals(parts[1])


def test_imputed_tensors_and_labelled_data():
    X = torch.tensor([[[0.0, torch.nan, 2.0]]])
    assert torch.equal(LinearImputer().fit_transform(X), torch.tensor([[[0.0, 1.0, 2.0]]]))
    (one,) = LinearImputer().fit_transform([X[0]])
    assert torch.equal(one, torch.tensor([[0.0, 1.0, 2.0]]))
    assert LinearImputer().fit(X).sample(X, 2).shape == (2, 1, 1, 3)
    labelled = from_frame(GAPS[["id", "time", "warmth"]])
    filled = ForwardImputer().fit_transform(labelled)
    assert isinstance(filled, Labelled)
    assert filled.channels == ("warmth",)
    assert filled.sequences.values.ravel().tolist() == [20, 20, 22, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: random_classifier().fit(watches().drop(columns="label")),
            ValueError,
            "`y` must be given, since `X` has no labels",
        ),
        (
            lambda: random_classifier().fit(watches()).predict(watches().drop(columns="worn")),
            ValueError,
            "`X` must have a column `worn`, found id, time, beats, surface, label",
        ),
        (
            lambda: random_classifier().fit(watches()).predict(from_frame(watches().assign(surface="ice"))),
            ValueError,
            "`X` must have the columns ['beats', 'surface=grass', 'surface=road', 'worn'] as in `fit`, "
            "got ['beats', "
            "'surface=ice', 'worn']",
        ),
        (
            lambda: random_classifier().fit(watches()).predict(from_frame(watches(), unit="h")),
            ValueError,
            "`X` must have times in the unit s as in `fit`, got h; `Sequences.from_frame(…, like=train)` "
            "takes that of "
            "the training data",
        ),
        (
            lambda: random_classifier().fit(pl.DataFrame({"x": [1.0, 2.0]})),
            TypeError,
            "`X` must be a list of frames, whose rows are steps, a frame indexed by (instance, time), or "
            "one with a "
            "column `id`, got one frame of 2 rows; `[X]` is one sequence, and `Sequences.from_frame` "
            "reads it with the "
            "names of the columns, or with `wide=True` for one sequence per row",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
