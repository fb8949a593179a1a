import numpy as np
import pytest
import torch

from estimator_contract import ClassifierContract, problem
from seq2tens import estimators, nn
from seq2tens.data import from_aeon
from seq2tens.estimators import (
    MODELS,
    DeepLS2TClassifier,
    FCNClassifier,
    FCNLS2TClassifier,
    ResNetClassifier,
)
from seq2tens.estimators.interruption import InterruptedFitWarning
from seq2tens.estimators.seeds import repeatable_seed
from seq2tens.training import Checkpoints, Recipe, fast_recipe, paper_recipe

QUICK = {"epochs": 2, "batch_size": 8, "device": "cpu"}


class NetworkContract(ClassifierContract):
    def thorough(self):
        return self.make(epochs=20, batch_size=12, learning_rate=1e-2, scaling="channel")


class TestFCNLS2T(NetworkContract):
    def make(self, **changes):
        sizes = {"fcn_width": 4, "width": 4, "depth": 2}
        return FCNLS2TClassifier(**{"random_state": 0, **QUICK, **sizes, **changes})


class TestDeepLS2T(NetworkContract):
    def make(self, **changes):
        return DeepLS2TClassifier(**{"random_state": 0, **QUICK, "width": 4, "depth": 2, **changes})


class TestFCN(NetworkContract):
    def make(self, **changes):
        return FCNClassifier(**{"random_state": 0, **QUICK, "width": 4, **changes})


class TestResNet(NetworkContract):
    def make(self, **changes):
        return ResNetClassifier(**{"random_state": 0, **QUICK, "widths": (4, 4), **changes})


def small(**changes):
    return DeepLS2TClassifier(**{**QUICK, "width": 4, "depth": 1, "random_state": 0, **changes})


def same_weights(a, b):
    ours, theirs = a.network_.state_dict(), b.network_.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_names_for_the_shell():
    assert list(MODELS) == ["fcn-ls2t", "ls2t", "fcn", "resnet", "random-ls2t"]
    assert all(getattr(estimators, kind.__name__) is kind for kind in MODELS.values())


@pytest.mark.parametrize(
    ("model", "features", "sizes"),
    [
        (FCNLS2TClassifier(fcn_width=3, width=5, depth=2, order=3, weights="independent"), nn.FCNLS2T, 15),
        (DeepLS2TClassifier(width=5, depth=2, order=3), nn.DeepLS2T, 15),
        (FCNClassifier(width=7), nn.FCN, 7),
        (ResNetClassifier(widths=[3, 6]), nn.ResNet, 6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sizes_reach_the_network(model, features, sizes):
    network = model.set_params(**QUICK).fit(*problem()).network_
    assert type(network.features) is features
    assert network.features.out_features == sizes
    assert network.head.weight.shape == (2, sizes)


def test_numbers_of_numpy_are_numbers():
    model = small(epochs=np.int64(1), width=np.int64(3), learning_rate=np.float32(0.01)).fit(*problem())
    assert len(model.history_) == 1


def test_the_default_recipe_is_the_fast_one_with_changes():
    assert small(epochs=None, batch_size=None)._recipe(270) == fast_recipe(270)
    changed = small(epochs=7, batch_size=3, learning_rate=0.5)._recipe(270)
    assert (changed.epochs, changed.batch_size, changed.learning_rate) == (7, 3, 0.5)
    assert changed.schedule == fast_recipe(270).schedule


def test_the_recipe_of_the_paper_knows_residual_networks():
    free = {"recipe": "paper", "epochs": None, "batch_size": None}
    assert small(**free)._recipe(270) == paper_recipe(270)
    assert ResNetClassifier(**free)._recipe(270) == paper_recipe(270, "resnet")


def test_the_recipe_of_the_paper_starts_the_head_as_keras_does():
    X, y = problem(12)
    still = {"epochs": 1, "learning_rate": 1e-30, "width": 40}
    head = small(recipe="paper", **still).fit(X, y).network_.head
    bound = (6 / (head.in_features + head.out_features)) ** 0.5
    assert 0.9 * bound < head.weight.abs().max() < bound
    assert head.bias.abs().max() < 1e-20
    assert small(**still).fit(X, y).network_.head.bias.abs().max() > 1e-3


def test_a_recipe_of_ones_own():
    recipe = Recipe(epochs=3, batch_size=6, sampling="buckets", optimizer="adamw")
    model = small(recipe=recipe, epochs=None, batch_size=None).fit(*problem())
    assert [row["epoch"] for row in model.history_] == [1, 2, 3]


def test_history_has_a_row_per_epoch():
    history = small(epochs=3).fit(*problem()).history_
    assert [row["epoch"] for row in history] == [1, 2, 3]
    assert all({"train_loss", "rate", "seconds"} <= row.keys() for row in history)


@pytest.mark.parametrize(("n", "mode"), [(100, "sequence"), (102, "channel")])
def test_few_sequences_are_scaled_by_themselves(n, mode):
    X, y = problem(n=n)
    assert small(epochs=1).fit(X, y).scaler_.mode == mode
    assert small(epochs=1, scaling="channel").fit(X, y).scaler_.mode == "channel"
    assert small(epochs=1, scaling=None).fit(X, y).scaler_ is None


def test_facts_after_fit():
    model = small().fit(*problem(channels=3))
    assert (model.n_channels_, model.n_classes_, model.classes_.tolist()) == (3, 2, ["down", "up"])
    assert model.metadata_["unequal_length"]
    assert not model.network_.training


@pytest.mark.parametrize("favoured", ["up", "down"])
def test_class_weights_change_what_is_learned(favoured):
    X, y = problem()
    weights = {label: float(label == favoured) for label in ("up", "down")}
    lopsided = small(epochs=60, learning_rate=1e-2, class_weight=weights).fit(X, y)
    chances = lopsided.predict_proba(X).mean(axis=0)
    assert chances[lopsided.classes_ == favoured] > 0.7


class TestValidation:
    def test_the_best_weights_on_held_out_data_are_kept(self):
        model = small(epochs=6, validation_fraction=0.25).fit(*problem())
        assert {"validation_loss", "validation_accuracy"} <= model.history_[0].keys()
        assert model._recipe(18).monitor == "validation_loss"
        assert model._recipe(18).keep_best

    def test_early_stopping_looks_at_it(self):
        recipe = Recipe(epochs=200, batch_size=8, patience=2, learning_rate=0.1)
        model = small(recipe=recipe, epochs=None, batch_size=None, validation_fraction=0.25).fit(*problem())
        losses = [row["validation_loss"] for row in model.history_]
        assert len(losses) < 200
        assert np.argmin(losses) == len(losses) - 3

    def test_statistics_know_nothing_of_it(self):
        X, y = problem()
        model = small(epochs=1, validation_fraction=0.25, scaling="channel").fit(X, y)
        labels = torch.from_numpy(np.searchsorted(model.classes_, y))
        _, held = model._split(labels, repeatable_seed(model.random_state, model.checkpoint))
        altered = [100 * x if i in held.tolist() else x for i, x in enumerate(X)]
        again = small(epochs=1, validation_fraction=0.25, scaling="channel").fit(altered, y)
        assert again.preparation_.state() == model.preparation_.state()

    def test_a_monitor_of_ones_own_stays(self):
        recipe = Recipe(epochs=2, batch_size=8, monitor="validation_accuracy", mode="max")
        assert small(recipe=recipe, validation_fraction=0.5)._recipe(10).monitor == "validation_accuracy"

    def test_too_little_data(self):
        X, y = problem(n=2)
        with pytest.raises(ValueError, match="`validation_fraction` must give at least one of 2 sequences"):
            small(validation_fraction=0.4).fit(X, y)


class Interrupting(Checkpoints):
    """Ends the fit after the third epoch has been saved, as Ctrl-C would."""

    def write(self, epoch, saved):
        new = not any(self.folder.glob(f"epoch-{epoch:06d}.*"))
        path = super().write(epoch, saved)
        if epoch == 3 and new:
            raise KeyboardInterrupt
        return path


class TestCheckpoint:
    @pytest.mark.parametrize("more", [{}, {"validation_fraction": 0.25}])
    def test_an_interrupted_fit_goes_on_and_ends_the_same(self, tmp_path, more):
        X, y = problem()
        options = {"epochs": 7, "spatial_dropout": 0.2, **more}
        expected = small(**options).fit(X, y)
        with pytest.warns(InterruptedFitWarning):
            small(checkpoint=Interrupting(tmp_path, seconds=0), **options).fit(X, y)
        assert sorted(path.name for path in tmp_path.iterdir())[-1] == "epoch-000003.pt"
        resumed = small(checkpoint=tmp_path, **options).fit(X, y)
        assert same_weights(resumed, expected)
        assert not resumed.interrupted_
        assert [row["train_loss"] for row in resumed.history_] == [r["train_loss"] for r in expected.history_]

    def test_other_data_is_refused(self, tmp_path):
        X, y = problem()
        small(checkpoint=tmp_path).fit(X, y)
        small(checkpoint=tmp_path).fit(X, y)
        with pytest.raises(ValueError, match="`checkpoint` must belong to the same run, but its data is"):
            small(checkpoint=tmp_path).fit([2 * x + np.arange(x.shape[1]) for x in X], y)
        with pytest.raises(ValueError, match="`checkpoint` must belong to the same run, but its data is"):
            small(checkpoint=tmp_path).fit(X, y[::-1])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"class_weight": {"up": 2.0}}, r"its class_weights is \[1.0, 1.0\], this run's is \[1.0, 2.0\]"),
            ({"spatial_dropout": 0.3}, "spatial_dropout is 0.0, this run's is 0.3"),
            ({"weights": "independent"}, "weights is recursive, this run's is independent"),
            ({"epochs": 3}, "its recipe.epochs is 2, this run's is 3"),
        ],
    )
    def test_other_arguments_are_refused(self, tmp_path, change, message):
        small(order=1, checkpoint=tmp_path).fit(*problem())
        with pytest.raises(ValueError, match=message):
            small(order=1, checkpoint=tmp_path, **change).fit(*problem())

    @pytest.mark.parametrize("state", [None, np.random.RandomState(0)])
    def test_needs_a_random_state_that_can_be_repeated(self, tmp_path, state):
        with pytest.raises(ValueError, match="`random_state` must be an integer if there is a `checkpoint`"):
            small(checkpoint=tmp_path, random_state=state).fit(*problem())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"recipe": "slow"}, ValueError, "`recipe` must be one of 'fast', 'paper', got 'slow'"),
        ({"epochs": 0}, ValueError, "`epochs` must be at least 1, got 0"),
        ({"scaling": "both"}, ValueError, "`scaling` must be one of"),
        ({"random_state": -1}, ValueError, "`random_state` must be at least 0, got -1"),
        (
            {"random_state": "dice"},
            TypeError,
            "`random_state` must be None, an integer or a numpy RandomState",
        ),
        ({"validation_fraction": 1.5}, ValueError, r"`validation_fraction` must lie in \(0, 1\), got 1.5"),
        ({"width": 0}, ValueError, "`width` must be at least 1, got 0"),
        ({"device": "abacus"}, ValueError, "abacus"),
        ({"progress": "loud"}, ValueError, "`progress` must be one of"),
    ],
)
def test_wrong_arguments_are_told_at_fit(change, error, message):
    with pytest.raises(error, match=message):
        small(**change).fit(*problem())


def test_values_out_of_all_proportion_are_told():
    X, y = problem()
    model = small(scaling="channel").fit(X, y)
    X[3] = X[3] * 1e30
    with pytest.raises(ValueError, match="the network's output for sequence 3 is not finite"):
        model.predict(X)


def test_estimates_for_the_training_data_itself():
    X, y = problem()
    model = small()
    assert model.fit_predict(X, y, cv_size=2).shape == y.shape
    assert model.fit_predict_proba(from_aeon(X), y, cv_size=2).shape == (len(y), 2)
    np.testing.assert_array_equal(model.predict(X), small().fit(X, y).predict(X))


def test_it_learns():
    X, y = problem(n=60)
    test, truth = problem(n=60, seed=9)
    model = small(epochs=40, learning_rate=1e-2, scaling="channel").fit(X, y)
    assert model.score(test, truth) > 0.95
