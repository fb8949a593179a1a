"""What every estimator must satisfy; its test class inherits one of these and names the estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from aeon.testing.estimator_checking import check_estimator
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from seq2tens import estimators
from seq2tens.data import Sequences, from_aeon

SAME = {"rtol": 1e-5, "atol": 1e-5}


def problem(n=24, channels=2, shortest=3, longest=9, seed=0):
    """Sequences as a list of arrays `(channels, time)`, of two classes that differ in their trend."""
    rng = np.random.default_rng(seed)
    y = np.array(["down", "up"] * (n // 2))
    lengths = rng.integers(shortest, longest + 1, size=n)
    trend = [
        np.where(label == "up", 1, -1) * np.arange(length) for label, length in zip(y, lengths, strict=True)
    ]
    X = [0.5 * t + rng.normal(size=(channels, len(t))) for t in trend]
    return X, y


def with_gaps(X, seed=1):
    """The same with a quarter of the entries missing."""
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(x.shape) < 0.25, np.nan, x) for x in X]


def without_channel(X, channel=1):
    """The same with a channel of which nothing is known."""
    return [np.where(np.arange(len(x))[:, None] == channel, np.nan, x) for x in X]


def rich(seed=0):
    """Sequences with gaps, irregular times and static features, partly unknown."""
    X, y = problem(seed=seed)
    plain, rng = from_aeon(with_gaps(X)), np.random.default_rng(seed)
    times = np.concatenate([100 + np.cumsum(rng.exponential(size=n)) for n in plain.lengths])
    static = rng.normal(10, 3, size=(len(plain), 2))
    static[::5, 0] = np.nan
    return Sequences(plain.values, plain.offsets, times, static), y


class EstimatorContract:
    """Invariances."""

    def make(self, **changes):
        """A small and quick estimator, with random state 0 unless that is changed."""
        raise NotImplementedError

    def output(self, fitted, X):
        """What the estimator says about sequences, one row each."""
        raise NotImplementedError

    @pytest.fixture
    def fitted(self):
        """Fitted once for each class."""
        kind = type(self)
        if "_fitted" not in vars(kind):
            kind._fitted = self.make().fit(*problem())
        return kind._fitted

    def test_conventions_of_aeon(self):
        results = check_estimator(type(self.make()), raise_exceptions=True)
        assert len(results) > 20
        assert set(results.values()) == {"PASSED"}

    def test_order_company_and_padding_change_nothing(self, fitted):
        X, _ = problem(n=10, seed=1)
        expected = self.output(fitted, X)
        alone = np.concatenate([self.output(fitted, [x]) for x in X])
        np.testing.assert_allclose(alone, expected, **SAME)
        order = np.random.default_rng(0).permutation(len(X))
        np.testing.assert_allclose(self.output(fitted, [X[i] for i in order]), expected[order], **SAME)
        long, _ = problem(n=2, shortest=40, longest=60, seed=2)
        np.testing.assert_allclose(self.output(fitted, [*long, *X])[2:], expected, **SAME)

    def test_the_same_random_state_gives_the_same(self, fitted):
        X, y = problem()
        np.testing.assert_array_equal(self.output(self.make().fit(X, y), X), self.output(fitted, X))

    def test_global_generators_are_left_alone(self):
        X, y = problem()
        ours, theirs = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        for state in (None, 0):
            self.output(self.make(random_state=state).fit(X, y), X)
        after = np.random.get_state()  # noqa: NPY002
        assert all(np.array_equal(a, b) for a, b in zip(ours, after, strict=True))
        assert torch.equal(theirs, torch.get_rng_state())

    def test_longer_than_any_in_training(self, fitted):
        X, _ = problem(n=4, shortest=100, longest=120, seed=3)
        assert np.isfinite(self.output(fitted, X)).all()

    def test_sequences_of_one_step(self, fitted):
        X, y = problem(shortest=1, longest=1)
        assert np.isfinite(self.output(fitted, X)).all()
        assert np.isfinite(self.output(self.make().fit(from_aeon(X), y), X)).all()

    @pytest.mark.parametrize("trained", ["whole", "with gaps", "without channel"])
    def test_missing_values_in_training_and_later(self, trained):
        X, y = problem()
        versions = {"whole": X, "with gaps": with_gaps(X), "without channel": without_channel(X)}
        fitted = self.make().fit(versions[trained], y)
        for later in versions.values():
            assert np.isfinite(self.output(fitted, later)).all()

    def test_gaps_that_were_seen_in_training_are_told_apart(self):
        X, y = problem()
        fitted = self.make(scaling="channel").fit(with_gaps(X), y)
        gap = [np.concatenate([x[:, :1], np.full_like(x[:, 1:], np.nan)], axis=1) for x in X]
        still = [np.repeat(x[:, :1], x.shape[1], axis=1) for x in X]
        assert not np.allclose(self.output(fitted, gap), self.output(fitted, still))

    def test_kinds_of_input_are_one(self, fitted):
        X, _ = problem()
        expected = self.output(fitted, X)
        np.testing.assert_array_equal(self.output(fitted, from_aeon(X)), expected)
        np.testing.assert_array_equal(self.output(fitted, [from_aeon([x]) for x in X]), expected)
        equal = [x[:, :3] for x in X]
        np.testing.assert_array_equal(self.output(fitted, np.stack(equal)), self.output(fitted, equal))
        np.testing.assert_array_equal(self.output(fitted, [pd.DataFrame(x.T) for x in X]), expected)

    def test_columns_of_frames_keep_their_order(self):
        X, y = problem()
        frames = [pd.DataFrame(x.T, columns=["warmth", "pressure"]) for x in X]
        fitted = self.make().fit(frames, y)
        np.testing.assert_array_equal(self.output(fitted, frames), self.output(self.make().fit(X, y), X))
        message = (
            r"`X` must have the columns \['warmth', 'pressure'\] as in `fit`, got \['pressure', 'warmth'\]"
        )
        with pytest.raises(ValueError, match=message):
            self.output(fitted, [frame[["pressure", "warmth"]] for frame in frames])

    def test_times_and_static_features(self, tmp_path):
        sequences, y = rich()
        fitted = self.make().fit(sequences, y)
        expected = self.output(fitted, sequences)
        later = Sequences(sequences.values, sequences.offsets, sequences.times + 1e4, sequences.static)
        np.testing.assert_allclose(self.output(fitted, later), expected, **SAME)
        slower = Sequences(sequences.values, sequences.offsets, sequences.times * 3, sequences.static)
        assert not np.allclose(self.output(fitted, slower), expected)
        other = Sequences(sequences.values, sequences.offsets, sequences.times, sequences.static + 5)
        assert not np.allclose(self.output(fitted, other), expected)
        fitted.save(tmp_path / "model")
        again = self.output(estimators.load(tmp_path / "model"), sequences)
        np.testing.assert_array_equal(again, expected)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ((0, 1, 3), r"`X.times` must be given as in `fit` \(some\), got none"),
            ((0, 1, 2), r"`X.static` must be given as in `fit` \(some\), got none"),
        ],
    )
    def test_what_training_had_is_required_later(self, fields, message):
        sequences, y = rich()
        fitted = self.make().fit(sequences, y)
        whole = (sequences.values, sequences.offsets, sequences.times, sequences.static)
        with pytest.raises(ValueError, match=message):
            self.output(fitted, Sequences(*(whole[i] if i in fields else None for i in range(4))))

    def test_what_training_did_not_have_is_refused_later(self, fitted):
        sequences, _ = rich()
        with pytest.raises(ValueError, match=r"`X.times` must be given as in `fit` \(none\), got some"):
            self.output(fitted, sequences)

    def test_save_and_load(self, fitted, tmp_path):
        X, _ = problem(seed=5)
        fitted.save(tmp_path / "model")
        for load in (estimators.load, type(fitted).load):
            again = load(tmp_path / "model")
            assert type(again) is type(fitted)
            assert again.get_params() == fitted.get_params()
            np.testing.assert_array_equal(self.output(again, X), self.output(fitted, X))

    def test_pickle(self, fitted):
        X, _ = problem(seed=5)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(self.output(again, X), self.output(fitted, X))

    def test_clone(self, fitted):
        X, y = problem()
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        with pytest.raises(NotFittedError, match="has not been fitted"):
            self.output(copy, X)
        np.testing.assert_array_equal(self.output(copy.fit(X, y), X), self.output(fitted, X))

    def test_wrong_number_of_channels(self, fitted):
        X, _ = problem(channels=3)
        with pytest.raises(ValueError, match="`X` must have 2 channels as in `fit`, got 3"):
            self.output(fitted, X)

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda X: [], "`X` must hold at least one sequence, got an empty list"),
            (lambda X: np.zeros((0, 2, 5)), "`X` must hold at least one sequence, got none"),
            (lambda X: [*X[:3], X[0][:, :0]], "at least one step in every sequence, got none in sequence 3"),
        ],
    )
    def test_empty_input(self, fitted, spoil, message):
        X, y = problem()
        wrong = spoil(X)
        with pytest.raises(ValueError, match=message):
            self.output(fitted, wrong)
        with pytest.raises(ValueError, match=message):
            self.make().fit(wrong, y[: len(wrong)])

    def test_infinite_values_are_located(self, fitted):
        X, y = problem()
        X[4][1, 2] = -np.inf
        message = "must be finite, or NaN where missing, got -inf at sequence 4, step 2, channel 1"
        with pytest.raises(ValueError, match=message):
            self.output(fitted, X)
        with pytest.raises(ValueError, match=message):
            self.make().fit(X, y)


class ClassifierContract(EstimatorContract):
    """What has to do with labels."""

    def thorough(self):
        """One that learns the problem."""
        raise NotImplementedError

    def output(self, fitted, X):
        probabilities = fitted.predict_proba(X)
        assert probabilities.shape == (len(X), len(fitted.classes_))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[probabilities.argmax(axis=1)])
        return probabilities

    def test_predictions_follow_order_and_company(self, fitted):
        X, _ = problem(n=10, seed=1)
        expected = fitted.predict(X)
        np.testing.assert_array_equal(np.concatenate([fitted.predict([x]) for x in X]), expected)
        np.testing.assert_array_equal(fitted.predict(X[::-1]), expected[::-1])

    @pytest.mark.parametrize(
        "labels",
        [
            np.array(["b", "a"]),
            np.array(["b", "longer"], dtype=object),
            np.array([7, -2]),
            np.array([3, 1], dtype=np.uint8),
            np.array([2.0, -1.0]),
            np.array([True, False]),
        ],
        ids=lambda labels: str(labels.dtype),
    )
    def test_labels_of_any_type(self, labels, tmp_path):
        X, y = problem(n=12)
        y = labels[(y == "up").astype(int)]
        fitted = self.make().fit(X, y)
        assert fitted.classes_.tolist() == sorted(labels.tolist())
        fitted.save(tmp_path / "model")
        again = estimators.load(tmp_path / "model")
        assert again.classes_.dtype == again.predict(X).dtype == fitted.predict(X).dtype == labels.dtype
        np.testing.assert_array_equal(again.classes_, fitted.classes_)
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))

    def test_another_random_state_gives_something_else(self, fitted):
        X, y = problem()
        other = self.make(random_state=1).fit(X, y)
        assert not np.array_equal(self.output(other, X), self.output(fitted, X))

    def test_generator_as_random_state(self):
        X, y = problem()
        generators = [np.random.RandomState(3) for _ in range(2)]
        models = [self.make(random_state=generator).fit(X, y) for generator in generators]
        first = self.output(models[0], X)
        np.testing.assert_array_equal(self.output(models[1], X), first)
        assert not np.array_equal(self.output(models[0].fit(X, y), X), first)  # the next draw

    def test_even_weights_are_no_weights(self, fitted):
        X, y = problem()
        weighted = self.make().fit(X, y, sample_weight=np.full(len(y), 7.0))
        np.testing.assert_allclose(self.output(weighted, X), self.output(fitted, X), **SAME)

    def test_rows_without_weight_do_not_count(self):
        X, y = problem()
        other = np.where(y == "up", "down", "up")
        both, labels = [*X, *X], np.concatenate([y, other])
        for trusted, truth in ((0, y), (1, other)):
            weight = np.repeat([1.0, 1e-6] if trusted == 0 else [1e-6, 1.0], len(X))
            model = self.thorough().fit(both, labels, sample_weight=weight)
            assert model.score(X, truth) > 0.8

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([1.0], r"`sample_weight` must have shape \(24,\), got \(1,\)"),
            ([-1.0, *[1.0] * 23], "`sample_weight` must be finite and at least 0, got -1.0 at index 0"),
            ([0.0, 1.0] * 12, "`sample_weight` must be above 0 for at least one row of every class"),
        ],
    )
    def test_wrong_weights(self, weight, message):
        with pytest.raises(ValueError, match=message):
            self.make().fit(*problem(), sample_weight=weight)

    def test_scores_of_labels_not_seen_in_training(self, fitted):
        X, y = problem()
        assert fitted.score(X, np.full(len(X), "sideways")) == 0
        right = fitted.score(X, y)
        half = np.where(np.arange(len(X)) < 12, y, "sideways")
        assert fitted.score(X, half) <= right
        assert fitted.score(X[:1], fitted.predict(X[:1])) == 1

    def test_cross_validation_and_search(self):
        X, y = problem()
        scores = cross_val_score(self.make(), X, y, cv=2)
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()
        as_sequences = cross_val_score(self.make(), from_aeon(X), y, cv=2)
        np.testing.assert_array_equal(as_sequences, scores)
        search = GridSearchCV(self.make(), {"scaling": ["channel", "sequence"]}, cv=2).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.predict(X).shape == y.shape

    def test_wrong_labels(self):
        X, y = problem()
        with pytest.raises(ValueError, match="`y` must have 24 labels, one for each sequence of `X`, got 23"):
            self.make().fit(X, y[:-1])
        with pytest.raises(ValueError, match=r"`y` must have at least 2 classes, got \['up'\]"):
            self.make().fit(X, np.full(len(X), "up"))
        with pytest.raises(ValueError, match="`y` must hold class labels, got continuous values"):
            self.make().fit(X, np.linspace(0, 1, len(X)))
        with pytest.raises(ValueError, match=r"`y` must have one axis, got shape \(24, 1\)"):
            self.make().fit(X, y[:, None])
