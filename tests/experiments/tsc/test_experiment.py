"""The models of the experiment."""

import re
import shutil

import numpy as np
import pytest

from experiments.core.toy import archive
from seq2tens.data import Preparation, load_dataset
from seq2tens.estimators import FCNLS2TClassifier, ResNetClassifier
from seq2tens.experiments import MODELS, Cell
from seq2tens.experiments.tsc import data, published
from seq2tens.experiments.tsc import experiment as tsc
from seq2tens.experiments.tsc.table import MASKED, PUBLISHED
from seq2tens.training import fast_recipe, paper_recipe
from seq2tens.training.state import State

TRAINED = [name for name, model in MODELS.items() if model.trained]
COMPILED = [pytest.param(name, marks=pytest.mark.slow) for name in ("muse", "multirocket-hydra")]
QUICK = ["random-ls2t", "dtw", *COMPILED, "grsf", "arkernel", "smts", "lps", "mvarf"]


def test_names():
    assert list(MODELS) == [
        *("ls2t64-3", "fcn64-ls2t64-3", "fcn128-ls2t64-3", "fcn128", "resnet", "random-ls2t", "dtw", "muse"),
        *("mlstm-fcn", "multirocket-hydra", "grsf", "arkernel", "smts", "lps", "mvarf"),
    ]
    assert all(model.name == name for name, model in MODELS.items())
    assert tsc.EXPERIMENT.models == tuple(MODELS)


@pytest.mark.data("../published")
def test_published_names_and_data_sets_are_those_of_the_paper(on_file):
    rows = on_file("tsc_accuracy.csv")
    assert {row["model"] for row in rows} == {m.published for m in MODELS.values()} - {None}
    assert {row["dataset"] for row in rows} == set(tsc.EXPERIMENT.datasets)


def test_what_is_to_be_expected_is_what_was_published():
    for model in published.TRAINED:
        (label,) = [m.label for m in MODELS.values() if m.published == model]
        mean = np.mean([scores[model].mean for scores in published.ACCURACY.values()])
        told = float(re.search(rf" {label} (\d\.\d+)", tsc.EXPERIMENT.expected)[1])
        assert told == pytest.approx(mean, abs=0.00051)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("recipe", ["fast", "paper"])
def test_networks_are_trained_by_the_recipe(name, recipe):
    classifier = MODELS[name].make(3, recipe, 1)
    kind = "resnet" if name == "resnet" else "fcn-ls2t"
    expected = fast_recipe(200) if recipe == "fast" else paper_recipe(200, kind)
    assert classifier._recipe(200) == expected
    assert classifier.random_state == 3


def test_sizes_are_those_of_the_paper():
    large = MODELS["fcn128-ls2t64-3"].make(0, "fast", 1)
    assert isinstance(large, FCNLS2TClassifier)
    assert (large.fcn_width, large.width, large.depth, large.order) == (128, 64, 3, 2)
    assert MODELS["fcn64-ls2t64-3"].make(0, "fast", 1).fcn_width == 64
    assert MODELS["ls2t64-3"].make(0, "fast", 1).depth == 3
    assert MODELS["fcn128"].make(0, "fast", 1).width == 128
    assert isinstance(MODELS["resnet"].make(0, "fast", 1), ResNetClassifier)


def test_threads_reach_those_that_have_any():
    for name in ("random-ls2t", "dtw", "muse", "multirocket-hydra"):
        assert MODELS[name].make(0, "-", 2).n_jobs == 2


@pytest.mark.filterwarnings("ignore")  # of other libraries, about so little data
@pytest.mark.parametrize("name", QUICK)
def test_a_cell_is_measured(name, tmp_path):
    archive(tmp_path, n_train=16, steps=14)
    cell = Cell("tsc", "LIBRAS", name, 0, "-")
    row = tsc.measure(cell, 1, data=str(tmp_path))
    assert row.key == cell.key
    assert row.accuracy > 0.6
    assert (row.epochs, row.lowest_train_loss, row.parameters) == (None, None, None)
    assert (row.n_train, row.n_test) == (16, 8)
    assert row.fit_seconds > 0
    assert 100 < row.peak_mib < 10_000


def test_a_network_is_measured_with_its_epochs_and_parameters(tmp_path):
    archive(tmp_path)
    row = tsc.measure(Cell("tsc", "ECG", "ls2t64-3", 1, "fast"), 1, data=str(tmp_path))
    train, test = load_dataset("ECG", tmp_path)
    direct = MODELS["ls2t64-3"].make(1, "fast", 1).fit(train.sequences, train.labels)
    assert row.accuracy == round(direct.score(test.sequences, test.labels), 6)
    assert row.epochs == fast_recipe(12).epochs
    assert row.parameters == sum(p.numel() for p in direct.network_.parameters())


@pytest.mark.filterwarnings("ignore:`fit` was interrupted")
def test_an_interrupted_network_is_no_result(tmp_path, monkeypatch):
    archive(tmp_path)
    record = State.record

    def interrupting(state, row, recipe):
        record(state, row, recipe)
        if state.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(State, "record", interrupting)
    with pytest.raises(KeyboardInterrupt):
        tsc.measure(Cell("tsc", "ECG", "ls2t64-3", 1, "fast"), 1, data=str(tmp_path))


def quick_estimator(recipe, make=tsc._estimator):
    """As in a cell of this recipe, but small, and trained for three epochs."""
    cell = Cell("tsc", "ECG", "ls2t64-3", 0, recipe)
    return make(cell, 1).set_params(epochs=3, learning_rate=0.03, width=4, depth=1, device="cpu")


def test_both_recipes_of_the_paper_train_alike():
    published, masked = (quick_estimator(recipe) for recipe in (PUBLISHED, MASKED))
    assert published.recipe == masked.recipe == "paper"
    assert (published.scaling, masked.scaling) == (None, "auto")


@pytest.mark.parametrize(("n_train", "scaling"), [(12, "sequence"), (102, "channel")])
def test_published_padding_is_zeros_in_front_after_standardisation(n_train, scaling, tmp_path):
    train, test = load_dataset("ECG", archive(tmp_path, n_train=n_train))
    halves = data.published_collections(train, test)
    steps = max(*train.sequences.lengths, *test.sequences.lengths)
    preparation = Preparation(scaling).fit(train.sequences)
    for half, padded in zip((train, test), halves, strict=True):
        assert padded.shape == (len(half), 2, steps)
        for values, series in zip(preparation.transform(half.sequences), padded, strict=True):
            assert not series[:, : steps - len(values)].any()
            np.testing.assert_array_equal(series[:, steps - len(values) :], values.T)


def test_the_published_network_sees_zeros_in_front_and_a_masked_one_has_none(tmp_path):
    train, test = load_dataset("ECG", archive(tmp_path))
    published = data.published_collections(train, test)
    seeing = quick_estimator(PUBLISHED).fit(published.train, train.labels)
    longer = np.pad(published.test, ((0, 0), (0, 0), (5, 0)))
    change = np.abs(seeing.predict_proba(longer) - seeing.predict_proba(published.test)).max(axis=1)
    assert change.min() > 1e-6
    masked = data.collections(train, test, MODELS["ls2t64-3"])
    blind = quick_estimator(MASKED).fit(masked.train, train.labels)
    together = blind.predict_proba(masked.test)  # in batches, padded to the longest
    alone = np.concatenate([blind.predict_proba([series]) for series in masked.test])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("recipe", [PUBLISHED, MASKED])
def test_a_cell_of_the_paper_is_measured(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(tsc, "_estimator", lambda cell, threads: quick_estimator(cell.recipe))
    archive(tmp_path)
    row = tsc.measure(Cell("tsc", "ECG", "ls2t64-3", 0, recipe), 1, data=str(tmp_path))
    assert (row.recipe, row.epochs) == (recipe, 3)
    train, test = load_dataset("ECG", tmp_path)
    model = quick_estimator(recipe)
    given = (
        data.published_collections(train, test)
        if recipe == PUBLISHED
        else data.collections(train, test, MODELS["ls2t64-3"])
    )
    model.fit(given.train, train.labels)
    assert row.accuracy == round(model.score(given.test, test.labels), 6)
    lowest = min(epoch["train_loss"] for epoch in model.history_)
    assert row.lowest_train_loss == pytest.approx(lowest, rel=1e-3)


def test_series_are_padded_for_models_that_need_it(tmp_path):
    train, test = load_dataset("ECG", archive(tmp_path))
    padded, unseen = data.collections(train, test, MODELS["multirocket-hydra"])
    assert padded.shape == (12, 2, 10)
    assert unseen.shape == (8, 2, 10)
    first = train.sequences[0].values
    np.testing.assert_array_equal(padded[0, :, : len(first)], first.T)
    assert not padded[0, :, len(first) :].any()
    as_they_are, _ = data.collections(train, test, MODELS["dtw"])
    assert [x.shape[1] for x in as_they_are] == train.sequences.lengths.tolist()


@pytest.mark.slow
@pytest.mark.data("tsc")
@pytest.mark.filterwarnings("ignore")
def test_muse_is_measured_on_series_of_eight_steps():
    """Published is 0.912, with windows of four steps and more; aeon begins with six."""
    row = tsc.measure(Cell("tsc", "PenDigits", "muse", 0, "-"), 1)
    assert row.accuracy > 0.85


def test_models_by_name():
    assert tsc.choose_models(None) == list(MODELS)
    assert tsc.choose_models(["grsf", "dtw"]) == ["grsf", "dtw"]
    with pytest.raises(ValueError, match=r"`models` must be one of 'ls2t64-3', .* got 'lstm'"):
        tsc.choose_models(["lstm"])


def test_data_sets_that_are_not_there(tmp_path):
    archive(tmp_path)
    (tmp_path / "uea").mkdir()
    shutil.copy(tmp_path / "tsc" / "ECG.npz", tmp_path / "uea" / "PenDigits.npz")  # not the paper's split
    found = tsc.choose_datasets(None, tmp_path)
    assert found.names == ["LIBRAS", "ECG", "JapaneseVowels"]  # the last comes with aeon
    assert found.left_out[0].startswith("left out, since not found: the data sets Shapes, DigitShapes, PenD")
    with pytest.raises(ValueError, match=r"`datasets` must be available as .* got 'PEMS', which is not"):
        tsc.choose_datasets(["ECG", "PEMS"], tmp_path)
    with pytest.raises(ValueError, match=r"`datasets` must be one of 'Shapes', .* got 'Iris'"):
        tsc.choose_datasets(["Iris"], tmp_path)
