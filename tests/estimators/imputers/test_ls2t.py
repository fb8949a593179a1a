"""What the imputer of two LS2T streams adds to the contract of all imputers."""

import numpy as np
import pytest
import torch

from estimators.imputers.imputer_contract import ImputerContract
from estimators.imputers.test_vae import waves
from seq2tens.data import Sequences, from_aeon, held_out
from seq2tens.estimators import LinearImputer, LS2TImputer, load
from seq2tens.estimators.imputers import ls2t
from seq2tens.estimators.imputers.splitting import LONGEST_PIECE, pieces, split
from seq2tens.estimators.interruption import InterruptedFitWarning
from seq2tens.models.imputation import GapFiller, hidden_entries, loss
from seq2tens.models.imputation.two_streams import TwoStreamFiller

SMALL = {"width": 8, "functionals": 4, "depth": 1, "epochs": 3, "batch_size": 8}
FIXED = {**SMALL, "random_state": 0, "device": "cpu"}


class TestLS2T(ImputerContract):
    def make(self, **changes):
        return LS2TImputer(**{**FIXED, **changes})


@pytest.fixture(scope="module")
def trained():
    """A model that has seen complete waves, those to fill, and their truth."""
    model = LS2TImputer(width=16, functionals=8, epochs=40, random_state=0, device="cpu")
    truth = waves(n=64, seed=1)
    X, _ = held_out(truth, 0.4, np.random.default_rng(2))
    return model.fit(waves(n=200)), X, truth


def test_it_fills_better_than_straight_lines_and_knows_how_well(trained):
    model, X, truth = trained
    assert model.score(X, truth) > 0.5 * LinearImputer().fit(waves(n=200)).score(X, truth)
    hidden = np.isnan(X)
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(X, coverage)
        assert ((truth >= low) & (truth <= high))[hidden].mean() == pytest.approx(coverage, abs=0.05)


def test_draws_have_the_correlation_in_time_of_errors(trained):
    model, _, _ = trained
    gap = waves(n=8, seed=3)
    gap[:, :, 6:18] = np.nan
    correlations = {}
    for age in (0.0, 50.0):
        model.calibration_ = type(model.calibration_)(model.calibration_.table, age)
        draws = model.sample(gap, 60, random_state=0)[..., 6:18]
        deviations = draws - draws.mean(axis=0)
        products = deviations[..., 1:] * deviations[..., :-1]
        correlations[age] = products.mean() / np.square(deviations).mean()
    assert abs(correlations[0.0]) < 0.1
    assert correlations[50.0] > 0.8


def test_times_count_as_they_are(trained):
    model, X, _ = trained
    even = from_aeon(X)
    steps = even.positions.astype(float)
    timed = Sequences(even.values, even.offsets, 100 + steps)
    np.testing.assert_array_equal(model.transform(timed).values, model.transform(even).values)
    late = Sequences(even.values, even.offsets, steps**2)
    assert not np.allclose(model.transform(late).values, model.transform(even).values)
    units = LS2TImputer(**FIXED).fit(Sequences(even.values, even.offsets, 60 * steps))
    assert units.step_ == 60


def test_static_features_are_read_and_may_be_missing():
    rng = np.random.default_rng(0)
    level = rng.normal(size=(64, 1))
    values = np.repeat(level, 6, axis=0) + 0.01 * rng.normal(size=(64 * 6, 1))
    values[::6] = np.nan  # so that something is missing
    X = Sequences(values, np.arange(0, 64 * 6 + 1, 6), static=level)
    model = LS2TImputer(width=16, functionals=4, epochs=60, hide="channels", random_state=0).fit(X)
    unseen = Sequences(np.full((12, 1), np.nan), np.array([0, 6, 12]), static=np.array([[-1.5], [1.5]]))
    filled = model.transform(unseen).values
    assert filled[:6].mean() < -0.5 < 0.5 < filled[6:].mean()
    for static in (None, np.full((2, 1), np.nan)):
        bare = Sequences(unseen.values, unseen.offsets, static=static)
        assert np.isfinite(model.transform(bare).values).all()
    with pytest.raises(ValueError, match=r"`X.static` must have 1 features as in `fit`, got 2"):
        model.transform(Sequences(unseen.values, unseen.offsets, static=np.zeros((2, 2))))


def test_blocks_of_entries_change_nothing(trained, monkeypatch):
    model, X, _ = trained
    expected = model.transform(X)
    monkeypatch.setattr(ls2t, "BLOCK_NUMBERS", 1)
    monkeypatch.setattr(ls2t, "BLOCK_ENTRIES", 7)
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-5, atol=1e-5)


def test_float64_is_exact_whatever_the_company(trained):
    """What stands beside a sequence changes nothing but rounding errors."""
    model, X, _ = trained
    sequences = [x.T[: 5 + i] for i, x in enumerate(X[:8])]
    together = Sequences.from_list(sequences)
    network = model.network_
    try:
        network.double()
        knots = _double_knots(model, together)
        for i, sequence in enumerate(sequences):
            alone = _double_knots(model, Sequences.from_list([sequence]))
            start, stop = together.offsets[i : i + 2]
            np.testing.assert_allclose(alone, knots[start:stop], rtol=0, atol=1e-10)
    finally:
        network.float()


def _double_knots(model, X):
    source = ls2t.GapSource(X, np.isnan(X.values), torch.float64)
    knots = np.zeros((*X.values.shape, len(ls2t.LEVELS)))
    batch = source.batch(torch.arange(len(X)))
    entries = batch.hidden.nonzero(as_tuple=True)
    with torch.no_grad():
        filled = model.network_(batch.masked(batch.hidden), entries).both
    knots[X.offsets[entries[0].numpy()] + entries[1].numpy(), entries[2].numpy()] = filled.numpy()
    return knots


def test_gaps_at_either_end_and_long_ones(trained):
    model, _, truth = trained
    X = truth[:6].copy()
    X[0, :, :10], X[1, :, -10:], X[2, 0], X[3], X[4, :, 1:-1] = (np.nan,) * 5
    for result in (model.transform(X), *model.predict_interval(X)):
        assert np.isfinite(result).all()
        np.testing.assert_array_equal(result[~np.isnan(X)], X[~np.isnan(X)])


def test_pieces_of_long_sequences():
    lengths = [LONGEST_PIECE, 3 * LONGEST_PIECE + 1, 2]
    X = Sequences.from_list([np.zeros((n, 1)) for n in lengths], static=np.array([[0.0], [1.0], [2.0]]))
    parts = pieces(X)
    assert parts.lengths.tolist() == [256, 193, 192, 192, 192, 2]
    assert parts.static.ravel().tolist() == [0, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("n", [3, 40])
def test_what_is_kept_is_not_trained_on(n):
    X = from_aeon(waves(n=n))
    parts = split(X, "points", seed=0)
    hidden = parts.validation.values[parts.hidden]
    assert len(hidden) > 0
    assert not np.isin(hidden, parts.train.values[~np.isnan(parts.train.values)]).any()
    again = split(X, "points", seed=0)
    np.testing.assert_array_equal(again.hidden, parts.hidden)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    X = waves(n=16)
    first = LS2TImputer(**FIXED, checkpoint=tmp_path / "run").fit(X)
    again = LS2TImputer(**FIXED, checkpoint=tmp_path / "run").fit(X)
    assert again.history_ == first.history_  # with its seconds: nothing was trained again
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    with pytest.raises(ValueError, match="`checkpoint` must belong to the same run"):
        LS2TImputer(**FIXED, hide="points", checkpoint=tmp_path / "run").fit(X)


@pytest.mark.parametrize(
    ("n", "units", "offset"),
    [(1, 1.0, 0.0), (3, 1.0, 0.0), (12, 1e6, 0.0), (12, 1e-6, 0.0), (12, 1.0, 1e6)],
)
def test_few_sequences_and_any_units(n, units, offset):
    X = waves(n=n)
    X[:, 0, 3:6], X[1:2, 1] = np.nan, np.nan
    moved = X * units + offset
    model = LS2TImputer(**FIXED).fit(moved)
    low, high = model.predict_interval(moved)
    missing = np.isnan(X)
    assert (low < high)[missing].all()
    for result in (model.transform(moved), low, high, model.sample(moved, 1, random_state=0)[0]):
        back = (result - offset) / units
        assert (np.abs(back) < 100).all()
        np.testing.assert_array_equal(result[~missing], moved[~missing])


def test_whole_numbers_are_filled_between_them():
    X = np.round(5 * waves(n=12))
    whole = LS2TImputer(**FIXED).fit(X.astype(np.int64))
    X[:, 0, 3:6] = np.nan
    np.testing.assert_array_equal(whole.transform(X)[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(whole.transform(X)).all()


def test_an_interrupted_fit_can_be_used(monkeypatch):
    X, calls = waves(n=12), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) > 6:  # in the fourth of the epochs of two batches
            raise KeyboardInterrupt
        return hidden_entries(*args)

    monkeypatch.setattr(loss, "hidden_entries", interrupted)
    with pytest.warns(InterruptedFitWarning, match="`fit` was interrupted after 3 epochs"):
        model = LS2TImputer(**{**FIXED, "epochs": 50}).fit(X)
    assert model.interrupted_ is True
    assert 0 < len(model.history_) < 50
    X[:, 0, 3:6] = np.nan
    for result in (model.transform(X), *model.predict_interval(X), *model.sample(X, 1)):
        assert np.isfinite(result).all()
    assert model.stream().push(X[0].T).shape == X[0].T.shape


def test_static_features_are_saved(tmp_path):
    X = from_aeon(waves(n=12))
    X = Sequences(np.where(X.values > 1, np.nan, X.values), X.offsets, static=np.arange(24.0).reshape(12, 2))
    model = LS2TImputer(**FIXED).fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X).values, model.transform(X).values)
    assert again.interrupted_ is False
    assert again.history_ == model.history_


def test_models_of_the_earlier_network_still_load(tmp_path, monkeypatch):
    """Their network has two streams, and its facts do not name it."""
    X = waves(n=12)
    X[:, 0, 3:6] = np.nan
    monkeypatch.setattr(ls2t, "GapFiller", TwoStreamFiller)
    model = LS2TImputer(**FIXED).fit(X)
    monkeypatch.undo()
    facts = {name: fact for name, fact in model._facts().items() if name not in ("network", "usual_size")}
    monkeypatch.setattr(model, "_facts", lambda: facts)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.network_, TwoStreamFiller)
    assert again.calibration_.usual_size is None
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again").transform(X), model.transform(X))
    assert isinstance(LS2TImputer(**FIXED).fit(X).network_, GapFiller)


def test_the_number_of_pieces_that_are_held_out():
    for n, expected in [(10, 2), (20, 4), (50, 10), (100, 20), (200, 20), (400, 40)]:
        parts = split(from_aeon(waves(n=n)), "points", seed=0)
        assert len(parts.train) == n - expected
        assert len(np.unique(parts.piece)) == expected
        assert len(parts.piece) == len(parts.validation)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hide": "lines"}, "`hide` must be one of 'points', 'blocks', 'channels', 'mixed' or a list"),
        ({"hide": [0, 2]}, r"`hide` must list channels from 0 to 1, got \[0, 2\]"),
        ({"hide": []}, r"`hide` must list channels from 0 to 1, got \[\]"),
        ({"width": 0}, "`width` must be at least 1, got 0"),
        ({"depth": 0}, "`depth` must be at least 1, got 0"),
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), got 1.0"),
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        LS2TImputer(**{**FIXED, **change}).fit(waves(n=4))


@pytest.mark.slow
def test_a_hundred_thousand_steps():
    rng = np.random.default_rng(0)
    steps = np.arange(100_000)
    X = np.stack([np.sin(0.1 * steps), np.cos(0.1 * steps)]) + 0.05 * rng.normal(size=(2, len(steps)))
    given, hidden = held_out(X[None], 0.3, rng)
    model = LS2TImputer(**{**FIXED, "width": 16, "epochs": 6}).fit(given)
    filled = model.transform(given)
    late = slice(50_000, None)  # far beyond the lengths of training
    errors = np.abs(filled - X)[0]
    assert errors[:, late][hidden[0][:, late]].mean() < 0.2
    low, high = model.predict_interval(given)
    inside = (np.clip(X, low, high) == X)[0]
    assert 0.85 < inside[:, late][hidden[0][:, late]].mean() < 0.97
