"""What every imputer must satisfy."""

import pickle

import numpy as np
import pytest
import torch
from aeon.testing.estimator_checking import check_estimator
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_contract import SAME, problem, with_gaps, without_channel
from estimators.imputers.format_contract import FormatContract, flat, gaps
from seq2tens import estimators
from seq2tens.data import Sequences, from_aeon, held_out
from seq2tens.estimators import LS2TFeatures


class ImputerContract(FormatContract):
    """Values, draws, intervals, scores and the conventions of scikit-learn."""

    def test_conventions_of_aeon(self):
        results = check_estimator(type(self.make()), raise_exceptions=True)
        assert len(results) > 20
        assert set(results.values()) == {"PASSED"}

    def test_order_company_and_padding_change_nothing(self, fitted):
        X = gaps(n=10, seed=1)
        order = np.random.default_rng(0).permutation(len(X))
        long = gaps(n=2, shortest=40, longest=60, seed=2)
        for output in (fitted.transform, lambda X: fitted.predict_interval(X)[0]):
            expected = output(X)
            alone = [output([x])[0] for x in X]
            np.testing.assert_allclose(flat(alone), flat(expected), **SAME)
            moved = output([X[i] for i in order])
            np.testing.assert_allclose(flat(moved), flat([expected[i] for i in order]), **SAME)
            np.testing.assert_allclose(flat(output([*long, *X])[2:]), flat(expected), **SAME)

    def test_draws_follow_the_random_state_and_not_the_company(self, fitted):
        X = gaps(n=10, seed=1)
        first = fitted.sample(X, 4, random_state=0)
        for a, b in zip(first, fitted.sample(X, 4, random_state=0), strict=True):
            np.testing.assert_array_equal(flat(a), flat(b))
        short = fitted.sample(X[:3], 4, random_state=0)
        np.testing.assert_allclose(flat(short[3]), flat(first[3][:3]), **SAME)
        assert not np.array_equal(flat(first[0]), flat(first[1]))
        assert not np.array_equal(flat(first[0]), flat(fitted.sample(X, 4, random_state=1)[0]))
        twins = fitted.sample([X[0], X[0]], 1, random_state=0)[0]
        assert not np.array_equal(twins[0], twins[1])

    def test_draws_and_intervals_agree(self, fitted):
        X = gaps(n=4)
        missing = np.isnan(flat(X))
        drawn = np.stack([flat(copy)[missing] for copy in fitted.sample(X, 400, random_state=0)])
        low, high = (flat(end)[missing] for end in fitted.predict_interval(X, 0.8))
        inside = ((drawn >= low) & (drawn <= high)).mean()
        assert 0.72 < inside < 0.88

    def test_wider_intervals_cover_more(self, fitted):
        X = gaps()
        missing = np.isnan(flat(X))
        narrow, wide = fitted.predict_interval(X, 0.5), fitted.predict_interval(X, 0.95)
        low, high = (flat(b)[missing] - flat(a)[missing] for a, b in zip(narrow, wide, strict=True))
        assert (low < 0).all()
        assert (high > 0).all()

    def test_the_same_random_state_gives_the_same(self, fitted):
        X = gaps()
        np.testing.assert_array_equal(flat(self.make().fit(X).transform(X)), flat(fitted.transform(X)))

    def test_global_generators_are_left_alone(self):
        X = gaps()
        ours, theirs = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        model = self.make().fit(X)
        model.sample(X, 2)
        model.predict_interval(X)
        model.score(X)
        after = np.random.get_state()  # noqa: NPY002
        assert all(np.array_equal(a, b) for a, b in zip(ours, after, strict=True))
        assert torch.equal(theirs, torch.get_rng_state())

    def test_nothing_missing(self, fitted):
        X, _ = problem()
        whole = self.make().fit(X)
        for model in (whole, fitted):
            np.testing.assert_array_equal(flat(model.transform(X)), flat(X))
            np.testing.assert_array_equal(flat(model.sample(X, 1)[0]), flat(X))
            np.testing.assert_array_equal(flat(model.predict_interval(X)[1]), flat(X))
        assert np.isfinite(flat(whole.transform(gaps()))).all()

    def test_a_channel_never_observed_in_training(self, fitted):
        X = without_channel(gaps())
        model = self.make().fit(X)
        low, high = model.predict_interval(X)
        for result in (model.transform(X), model.sample(X, 1, random_state=0)[0], low, high):
            assert all((x[1] == 0).all() for x in result)
            assert np.isfinite(flat(result)).all()
        later = model.transform(gaps())
        assert np.isfinite(flat(later)).all()

    def test_a_sequence_without_a_channel_and_one_without_anything(self, fitted):
        X = gaps(seed=3)
        X[0][1], X[1][:] = np.nan, np.nan
        for model in (fitted, self.make().fit(X)):
            for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
                assert np.isfinite(flat(result)).all()

    def test_nothing_observed_at_all(self):
        X = np.full((4, 2, 5), np.nan)
        model = self.make().fit(X)
        for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
            assert (result == 0).all()

    def test_sequences_of_one_step(self, fitted):
        X = gaps(shortest=1, longest=1)
        for model in (fitted, self.make().fit(from_aeon(X))):
            for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
                assert np.isfinite(flat(result)).all()

    def test_a_constant_channel_is_filled_with_the_constant(self):
        X = gaps()
        for x in X:
            x[1, ~np.isnan(x[1])] = 0.1
        model = self.make().fit(X)
        for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
            assert np.isfinite(flat(result)).all()
            np.testing.assert_allclose(np.concatenate([x[1] for x in result]), 0.1, rtol=1e-12)

    def test_score_is_the_error_in_units_of_training(self, fitted):
        truth, _ = problem(seed=4)
        X = with_gaps(truth)
        scale = fitted.scaler_.scale_[:, None]
        filled = fitted.transform(X)
        errors = flat([(f - t) / scale for f, t in zip(filled, truth, strict=True)])
        assert fitted.score(X, truth) == pytest.approx(-np.mean(errors[np.isnan(flat(X))] ** 2))
        assert fitted.score(from_aeon(X), from_aeon(truth)) == pytest.approx(fitted.score(X, truth))

    def test_score_hides_entries_itself(self, fitted):
        sequences = from_aeon(gaps(seed=4))
        values, _ = held_out(sequences.values, 0.2, np.random.default_rng(5))
        hidden = Sequences(values, sequences.offsets)
        expected = fitted.score(hidden, sequences)
        assert fitted.score(sequences, fraction=0.2, random_state=5) == pytest.approx(expected)
        assert fitted.score(sequences) == fitted.score(sequences) < 0

    def test_units_of_the_data_do_not_matter(self, fitted):
        X = gaps()
        units = np.array([[1e3], [1e-3]])
        moved = [x * units + 5 for x in X]
        model = self.make().fit(moved)
        back = [(x - 5) / units for x in model.transform(moved)]
        np.testing.assert_allclose(flat(back), flat(fitted.transform(X)), rtol=1e-3, atol=1e-3)
        assert model.score(moved) == pytest.approx(fitted.score(X), rel=1e-3)

    def test_pipeline_and_cross_validation(self):
        X, y = problem(n=16)
        X = with_gaps(X)
        model = make_pipeline(self.make(), LS2TFeatures(width=8, random_state=0), StandardScaler())
        assert np.isfinite(model.fit_transform(X, y)).all()
        scores = cross_val_score(self.make(), X, cv=2)
        np.testing.assert_allclose(cross_val_score(self.make(), from_aeon(X), cv=2), scores)
        assert np.isfinite(scores).all()

    def test_save_and_load(self, fitted, tmp_path):
        X = gaps(seed=5)
        fitted.save(tmp_path / "model", {"note": 1})
        for load in (estimators.load, type(fitted).load):
            again = load(tmp_path / "model")
            assert type(again) is type(fitted)
            assert again.get_params() == fitted.get_params()
            assert again.notes_ == {"note": 1}
            self.assert_same(again, fitted, X)

    def test_pickle(self, fitted):
        self.assert_same(pickle.loads(pickle.dumps(fitted)), fitted, gaps(seed=5))

    def assert_same(self, one, other, X):
        np.testing.assert_array_equal(flat(one.transform(X)), flat(other.transform(X)))
        for a, b in zip(one.predict_interval(X), other.predict_interval(X), strict=True):
            np.testing.assert_array_equal(flat(a), flat(b))
        drawn = (model.sample(X, 1, random_state=3)[0] for model in (one, other))
        np.testing.assert_array_equal(*map(flat, drawn))

    def test_clone(self, fitted):
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        X = gaps()
        for call in (copy.transform, copy.sample, copy.predict_interval, copy.score):
            with pytest.raises(NotFittedError, match="has not been fitted"):
                call(X)
        np.testing.assert_array_equal(flat(copy.fit(X).transform(X)), flat(fitted.transform(X)))

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda m, X: m.transform(gaps(channels=3)), "`X` must have 2 channels as in `fit`, got 3"),
            (lambda m, X: m.transform([]), "`X` must hold at least one sequence, got an empty list"),
            (lambda m, X: m.transform({"values": X}), r'must have the key "X", got \[\'values\'\]'),
            (lambda m, X: m.sample(X, 0), "`n` must be at least 1, got 0"),
            (lambda m, X: m.predict_interval(X, 1.0), r"`coverage` must lie in \(0, 1\), got 1.0"),
            (lambda m, X: m.score(X, X[:3]), "`truth` must have the sequences, steps and channels of `X`"),
            (lambda m, X: m.score(X, X), "`score` needs at least one entry to compare, got none"),
        ],
    )
    def test_wrong_arguments(self, fitted, call, message):
        with pytest.raises(ValueError, match=message):
            call(fitted, gaps())

    def test_infinite_values_are_located(self, fitted):
        X = gaps()
        X[4][1, 2] = -np.inf
        message = "must be finite, or NaN where missing, got -inf at sequence 4, step 2, channel 1"
        for call in (fitted.transform, self.make().fit):
            with pytest.raises(ValueError, match=message):
                call(X)
