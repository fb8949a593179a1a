"""Imputers of PyPOTS with our conventions."""

import logging
import pickle
import random
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

from seq2tens.data import Sequences
from seq2tens.estimators import (
    IMPUTERS,
    BRITSImputer,
    CSDIImputer,
    ImputeFormerImputer,
    LinearImputer,
    PyPOTSImputer,
    SAITSImputer,
    load,
)
from seq2tens.estimators.imputers import pypots as adapters

CLASSES = [cls for cls in IMPUTERS.values() if issubclass(cls, PyPOTSImputer)]
# The draws of CSDI vary with the sequences beside.
REPEATABLE = [cls for cls in CLASSES if cls is not CSDIImputer]


@pytest.fixture
def pypots():
    pytest.importorskip("tsdb", reason="pip install 'seq2tens[baselines]'")
    return adapters.import_pypots("this test")


def make(cls, **options):
    return cls(**{**cls._get_test_params(), "device": "cpu", **options})


def waves(n=8, seed=0):
    """Unequal lengths, in units of their own, with gaps."""
    rng = np.random.default_rng(seed)
    series = [np.sin(np.arange(length) + rng.normal()) for length in rng.integers(4, 9, size=n)]
    collection = [np.stack([wave, 100 + 10 * wave]) for wave in series]
    for x in collection:
        x[rng.random(x.shape) < 0.3] = np.nan
    return collection


@pytest.mark.parametrize("cls", CLASSES)
def test_a_missing_package_is_named_with_its_extra(cls, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pypots"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pypots", None)
    with pytest.raises(
        ImportError, match=rf"{cls.__name__} needs PyPOTS: pip install 'seq2tens\[baselines\]'"
    ):
        make(cls).fit(waves())
    assert logging.root.manager.disable == 0


@pytest.mark.parametrize(
    ("cls", "option", "value"),
    [
        (BRITSImputer, "width", 0),
        (BRITSImputer, "epochs", 0),
        (BRITSImputer, "patience", 0),
        (SAITSImputer, "width", 7),
        (SAITSImputer, "dropout", 1.0),
        (SAITSImputer, "learning_rate", 0.0),
        (BRITSImputer, "time_limit", 0),
        (BRITSImputer, "time_limit", "abc"),
        (ImputeFormerImputer, "embedding", 8),
        (CSDIImputer, "width", 5),
        (CSDIImputer, "n_draws", 0),
    ],
)
def test_settings_are_checked_before_anything_is_loaded(cls, option, value):
    with pytest.raises(ValueError, match=f"`{option}` must .*got {value}"):
        make(cls, **{option: value}).fit(waves())


@pytest.mark.parametrize("cls", CLASSES)
def test_what_was_observed_stays_and_the_rest_is_filled(cls, pypots, capfd):
    X = waves()
    model = make(cls).fit(X)
    filled = model.transform(X)
    for given, complete in zip(X, filled, strict=True):
        seen = ~np.isnan(given)
        assert (given[seen] == complete[seen]).all()
        assert np.isfinite(complete).all()
    second = np.concatenate(
        [complete[1][np.isnan(given[1])] for given, complete in zip(X, filled, strict=True)]
    )
    assert (abs(second - 100) < 50).all()  # in the units of the channel
    low, high = model.predict_interval(X, 0.5)
    assert all((a <= b).all() for a, b in zip(low, high, strict=True))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("cls", CLASSES)
def test_seeds_decide_and_global_generators_do_not_notice(cls, pypots):
    X = waves()
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    first, again, other = (make(cls, random_state=seed).fit_transform(X) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_equal(np.random.get_state(), before[1])  # noqa: NPY002
    assert random.getstate() == before[2]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("cls", CLASSES)
def test_saved_copied_and_pickled(cls, pypots, tmp_path):
    X = waves()
    model = make(cls).fit(X)
    model.save(tmp_path / "model")
    expected = model.transform(X)
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), clone(model).fit(X)):
        found = other.transform(X)
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
        assert np.array_equal(other.errors_, model.errors_)


@pytest.mark.parametrize("cls", REPEATABLE)
def test_a_sequence_is_filled_alike_alone_and_among_others(cls, pypots):
    X = waves()
    model = make(cls).fit(X)
    together = model.transform(X)
    for i in (0, 3):
        np.testing.assert_allclose(model.transform(X[i : i + 1])[0], together[i], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cls", CLASSES)
def test_what_is_seldom_in_the_data(cls, pypots):
    """A channel never observed, a constant one, sequences of one step and without any value."""
    X = [np.vstack([x, np.full((1, x.shape[1]), np.nan), np.full((1, x.shape[1]), 5.0)]) for x in waves()]
    X[1] = X[1][:, :1]
    X[2][:] = np.nan
    X[3][3, 0] = np.nan
    model = make(cls).fit(X)
    filled = model.transform(X)
    assert all(np.isfinite(x).all() for x in filled)
    assert all((x[2] == 0).all() and (x[3] == 5).all() for x in filled)
    complete = [np.ones((4, 3)), np.zeros((4, 2))]
    assert all(np.array_equal(a, b) for a, b in zip(model.transform(complete), complete, strict=True))
    single = Sequences.from_list([np.array([[1.0, np.nan]])])
    assert np.isfinite(make(cls).fit(single).transform(single).values).all()


@pytest.mark.parametrize("cls", REPEATABLE)
def test_longer_sequences_than_in_training_are_filled_in_pieces(cls, pypots):
    model = make(cls).fit([np.array([[1.0, np.nan, 2.0]]), np.array([[0.0, 3.0]])])
    long = np.array([[1.0, np.nan, 2.0, 3.0, np.nan, 1.0, np.nan]])
    whole = model.transform([long])[0]
    pieces = model.transform([long[:, :3], long[:, 3:6], long[:, 6:]])
    np.testing.assert_allclose(whole, np.concatenate(pieces, axis=1), rtol=1e-5)


@pytest.mark.parametrize("cls", CLASSES)
def test_epochs_are_told_and_kept(cls, pypots, capsys):
    model = make(cls, progress="lines").fit(waves())
    assert [row["epoch"] for row in model.history_] == [1, 2]
    assert all(row["loss"] > 0 and row["validation_loss"] > 0 for row in model.history_)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch 1/2  loss ")
    assert last.startswith("epoch 2/2  loss ")
    assert "validation loss" in last
    assert not model.timed_out_


@pytest.mark.parametrize("cls", CLASSES)
def test_a_time_limit_ends_training_with_the_best_weights_so_far(cls, pypots, monkeypatch):
    """The clock goes on by a second at every look."""
    X = waves()
    whole = make(cls, batch_size=4).fit(X)
    looks = iter(range(10**6))
    monkeypatch.setattr(adapters.time, "monotonic", lambda: next(looks))
    # An epoch has two batches to train on, and two to compare or one.
    model = make(cls, batch_size=4, epochs=10**3, time_limit=10).fit(X)
    assert model.timed_out_
    assert 1 <= len(model.history_) <= 3
    assert model.history_[:2] == whole.history_[: len(model.history_[:2])]
    assert all(np.isfinite(x).all() for x in model.transform(X))


def test_a_time_limit_in_the_first_epoch_keeps_the_weights_of_that_moment(pypots):
    X = waves()
    model = make(BRITSImputer, time_limit=1e-9).fit(X)
    assert model.timed_out_
    assert model.history_ == []
    assert all(np.isfinite(x).all() for x in model.transform(X))


def test_csdi_draws(pypots):
    X = waves()
    model = make(CSDIImputer, n_draws=50).fit(X)
    draws = model.sample(X, 50, random_state=0)
    low, high = model.predict_interval(X, 0.5)
    for i, (given, filled) in enumerate(zip(X, model.transform(X), strict=True)):
        missing = np.isnan(given)
        stacked = np.stack([copy[i][missing] for copy in draws])
        np.testing.assert_allclose(np.median(stacked, axis=0), filled[missing])
        np.testing.assert_allclose(np.quantile(stacked, 0.25, axis=0), low[i][missing])
        assert (low[i][missing] < high[i][missing]).all()


def test_ctrl_c_ends_a_fit(pypots, monkeypatch):
    """PyPOTS would go on with what it has."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pypots.imputation.BRITS, "_assemble_input_for_training", interrupt)
    model = make(BRITSImputer)
    with pytest.raises(KeyboardInterrupt):
        model.fit(waves())
    assert not model.is_fitted


def test_linear_interpolation_is_that_of_pypots(pypots):
    rng = np.random.default_rng(0)
    cube = rng.normal(size=(5, 12, 3))
    cube[:, 2:10][rng.random((5, 8, 3)) < 0.5] = np.nan
    packed = Sequences(cube.reshape(60, 3), np.arange(6) * 12)
    ours = LinearImputer().fit(packed).transform(packed).values.reshape(cube.shape)
    theirs = pypots.imputation.Lerp().predict({"X": cube.copy()})["imputation"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
