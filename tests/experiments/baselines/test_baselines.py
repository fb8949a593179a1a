"""What all baselines on scikit-learn must satisfy."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from estimator_contract import SAME, ClassifierContract, problem, rich
from seq2tens.data import Sequences, from_aeon, load_dataset
from seq2tens.experiments.baselines import (
    ARKernelClassifier,
    GRSFClassifier,
    LPSClassifier,
    MVARFClassifier,
    SMTSClassifier,
)

SMALL = {
    ARKernelClassifier: {"orders": (2, 1), "evidences": (10.0,), "bandwidths": (1.0,), "n_folds": 2},
    GRSFClassifier: {"n_trees": 20, "n_shapelets": 5},
    LPSClassifier: {"n_trees": 10, "shares": (None, 0.5), "depths": (3,)},
    MVARFClassifier: {"n_trees": 5, "orders": (2,), "n_leaves": (6, 4), "penalties": (10.0,)},
    SMTSClassifier: {"n_trees": (4, 2), "n_leaves": (6,), "n_trees_series": 50},
}


class BaselineContract(ClassifierContract):
    """Baselines are neither saved nor do they take weights."""

    kind: type

    test_save_and_load = None
    test_even_weights_are_no_weights = None
    test_rows_without_weight_do_not_count = None
    test_wrong_weights = None

    def make(self, **changes):
        return self.kind(**{"random_state": 0, **SMALL[self.kind], **changes})

    def test_times_and_static_features(self):
        sequences, y = rich()
        fitted = self.make().fit(sequences, y)
        later = Sequences(sequences.values, sequences.offsets, sequences.times + 1e4, sequences.static)
        np.testing.assert_allclose(self.output(fitted, later), self.output(fitted, sequences), **SAME)

    @pytest.mark.parametrize(
        "labels",
        [np.array(["b", "a"]), np.array([7, -2]), np.array([True, False])],
        ids=lambda v: str(v.dtype),
    )
    def test_labels_of_any_type(self, labels):
        X, y = problem(n=12)
        y = labels[(y == "up").astype(int)]
        fitted = self.make().fit(X, y)
        assert fitted.classes_.tolist() == sorted(labels.tolist())
        assert fitted.predict(X).dtype == labels.dtype

    def test_cross_validation_and_search(self):
        X, y = problem()
        scores = cross_val_score(self.make(), X, y, cv=2)
        np.testing.assert_array_equal(cross_val_score(self.make(), from_aeon(X), y, cv=2), scores)
        search = GridSearchCV(self.make(), {"scaling": ["channel", "sequence"]}, cv=2).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_threads_change_nothing(self, fitted):
        X, y = problem()
        np.testing.assert_array_equal(self.output(self.make(n_jobs=2).fit(X, y), X), self.output(fitted, X))

    def test_one_channel_and_many(self):
        for channels in (1, 12):
            X, y = problem(channels=channels)
            assert self.make().fit(X, y).score(X, y) > 0.7

    def test_a_class_with_one_sequence(self):
        X, y = problem()
        y = np.where(np.arange(len(y)) == 3, "once", y)
        assert self.make().fit(X, y).predict(X).shape == y.shape

    def test_it_learns(self):
        X, y = problem(n=60)
        test, truth = problem(n=60, seed=9)
        assert self.make().fit(X, y).score(test, truth) > 0.85

    def test_real_data(self):
        """A part of it, and a small model: far better than chance, which is 1/9."""
        train, test = load_dataset("JapaneseVowels")
        fitted = self.make().fit(train.sequences[::3], train.labels[::3])
        assert fitted.score(test.sequences[::4], test.labels[::4]) > 0.6


class TestARKernel(BaselineContract):
    kind = ARKernelClassifier
    # only folds are drawn at random, and classes have no probabilities in which a small change would show
    test_another_random_state_gives_something_else = None
    test_generator_as_random_state = None
    test_gaps_that_were_seen_in_training_are_told_apart = None


class TestLPS(BaselineContract):
    kind = LPSClassifier
    test_generator_as_random_state = None

    def test_another_random_state_gives_something_else(self, fitted):
        other = self.make(random_state=1).fit(*problem())
        assert not np.array_equal(other.patterns_[:, :4], fitted.patterns_[:, :4])


class TestGRSF(BaselineContract):
    kind = GRSFClassifier
    test_gaps_that_were_seen_in_training_are_told_apart = (
        None  # whether a value is missing: a constant channel
    )

    def test_real_data(self):
        """Levels, which it does not see, tell much of vowels: published is 0.800."""
        train, test = load_dataset("JapaneseVowels")
        fitted = self.make().fit(train.sequences[::3], train.labels[::3])
        assert fitted.score(test.sequences[::4], test.labels[::4]) > 0.4


class TestMVARF(BaselineContract):
    kind = MVARFClassifier
    # classes have no probabilities in which a small change would show
    test_generator_as_random_state = None
    test_gaps_that_were_seen_in_training_are_told_apart = None

    def test_another_random_state_gives_something_else(self, fitted):
        other = self.make(random_state=1).fit(*problem())
        first, second = (model.forests_[0][0].members for model in (fitted, other))
        assert not np.array_equal(first, second)


class TestSMTS(BaselineContract):
    kind = SMTSClassifier


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (ARKernelClassifier, {"orders": ()}, "`orders` must hold at least one value, all above 0, got ()"),
        (ARKernelClassifier, {"evidences": (-1.0,)}, "`evidences` must hold at least one value, all above 0"),
        (ARKernelClassifier, {"n_folds": 1}, "`n_folds` must be at least 2, got 1"),
        (ARKernelClassifier, {"sample": 0}, "`sample` must be at least 1, got 0"),
        (GRSFClassifier, {"n_shapelets": 0}, "`n_shapelets` must be at least 1, got 0"),
        (GRSFClassifier, {"longest": 1.5}, r"`longest` must lie in \(0, 1\], got 1.5"),
        (LPSClassifier, {"n_trees": 0}, "`n_trees` must be at least 1, got 0"),
        (LPSClassifier, {"shares": (1.5,)}, "`shares` must hold at least one value, each None or in"),
        (LPSClassifier, {"depths": (0,)}, "`depths` must hold at least one value, all above 0"),
        (MVARFClassifier, {"n_leaves": (1,)}, "`n_leaves` must hold at least one value, all above 1"),
        (MVARFClassifier, {"orders": (0,)}, "`orders` must hold at least one value, all above 0"),
        (MVARFClassifier, {"penalties": ()}, "`penalties` must hold at least one value, all above 0, got ()"),
        (SMTSClassifier, {"n_trees": ()}, "`n_trees` must hold at least one value, all above 0"),
        (SMTSClassifier, {"n_trees_series": 0}, "`n_trees_series` must be at least 1, got 0"),
        (SMTSClassifier, {"scaling": "both"}, "`scaling` must be one of"),
        (SMTSClassifier, {"random_state": -1}, "`random_state` must be at least 0, got -1"),
    ],
)
def test_wrong_arguments_are_told_at_fit(kind, change, message):
    with pytest.raises(ValueError, match=message.replace("()", r"\(\)")):
        kind(**{**SMALL[kind], **change}).fit(*problem())
