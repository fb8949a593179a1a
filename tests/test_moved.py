"""Old names work for one release, with a warning that tells the new ones."""

import contextlib
import importlib

import numpy as np
import pytest
import torch

from experiments.core.test_rows import ROW
from seq2tens import distributed, exporting, plots, training
from seq2tens.data import Columns
from seq2tens.estimators import LS2TImputer, RandomLS2TClassifier, compare
from seq2tens.models import gpvae
from seq2tens.models.imputation import GapFiller


def test_stairs_are_a_step_decay():
    with pytest.warns(DeprecationWarning, match=r"`seq2tens.training.Stairs` is now .*StepDecay`") as warned:
        assert training.Stairs is training.StepDecay
    assert warned[0].filename == __file__  # not where the name was looked up


@pytest.mark.parametrize(
    "name", ["HELD_OUT_METRICS", "IncompleteBatch", "IncompleteSource", "NegativeElbo", "RaggedSource"]
)
def test_what_belongs_to_gp_vae_is_there(name):
    with pytest.warns(DeprecationWarning, match=f"is now `seq2tens.models.gpvae.{name}`"):
        assert getattr(training, name) is getattr(gpvae, name)


def test_a_standardization_is_spelled_as_in_scikit_learn():
    with pytest.warns(
        DeprecationWarning, match="Standardisation` is now `seq2tens.exporting.Standardization`"
    ):
        assert exporting.Standardisation is exporting.Standardization


def test_columns_are_resolved():
    columns = Columns()
    with pytest.warns(DeprecationWarning, match="`among` is now `resolve`"):
        assert columns.among == columns.resolve
    with pytest.raises(AttributeError, match="'Columns' object has no attribute 'nothing'"):
        columns.nothing  # noqa: B018


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match=r"module 'seq2tens.training' has no attribute 'nothing'"):
        training.nothing  # noqa: B018


def test_nothing_is_watched_any_more():
    with pytest.warns(DeprecationWarning, match=r"`seq2tens.distributed.watched` is now"):
        watched = distributed.watched
    assert isinstance(watched(), contextlib.nullcontext)
    with pytest.warns(DeprecationWarning, match=r"`seq2tens.distributed.ProcessLost` is now"):
        assert distributed.ProcessLost is RuntimeError


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("imputation_table", "imputation", "ImputationCell"),
        ("mortality_search", "mortality.tuning", "choose"),
        ("mortality_table", "mortality", "MortalityRow"),
        ("statistics", "report.statistics", "mean_ranks"),
    ],
)
def test_modules_of_experiments_are_in_folders(old, new, name):
    module = importlib.import_module(f"seq2tens.experiments.{old}")
    with pytest.warns(DeprecationWarning, match=f"`seq2tens.experiments.{old}` is now"):
        value = getattr(module, name)
    assert value is getattr(importlib.import_module(f"seq2tens.experiments.{new}"), name)
    with pytest.raises(AttributeError, match="nothing"):
        module.nothing  # noqa: B018


def test_a_module_is_imported_from_by_its_old_name():
    with pytest.warns(DeprecationWarning, match=r"is now `seq2tens.experiments.report.statistics`"):
        from seq2tens.experiments.statistics import mean_ranks  # noqa: F401


def test_sharpness_is_an_inverse_temperature():
    X, y = np.random.default_rng(0).normal(size=(8, 1, 12)), np.arange(8) % 2
    model = RandomLS2TClassifier(n_blocks=1, random_state=0).fit(X, y)
    with pytest.warns(DeprecationWarning, match="`sharpness_` is now `inverse_temperature_`") as warned:
        assert model.sharpness_ == model.inverse_temperature_
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="'RandomLS2TClassifier' object has no attribute 'nothing'"):
        model.nothing  # noqa: B018
    assert not hasattr(RandomLS2TClassifier(), "sharpness_")


def test_errors_on_held_out_entries():
    X = np.sin(np.arange(24.0) + np.arange(12)[:, None, None])
    model = LS2TImputer(width=4, functionals=2, depth=1, epochs=1, random_state=0).fit(X)
    with pytest.warns(DeprecationWarning, match="`kept_errors_` is now `held_out_errors_`") as warned:
        assert model.kept_errors_ == model.held_out_errors_
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="'LS2TImputer' object has no attribute 'nothing'"):
        model.nothing  # noqa: B018


def test_a_gap_filler_predicts():
    filler = GapFiller(2, width=4, functionals=2, depth=1)
    with pytest.warns(DeprecationWarning, match="`tell` is now `predict`"):
        assert filler.tell == filler.predict
    with pytest.warns(DeprecationWarning, match="`tell_by_past` is now `predict_causally`"):
        assert filler.tell_by_past == filler.predict_causally
    with pytest.raises(AttributeError, match="'GapFiller' object has no attribute 'nothing'"):
        filler.nothing  # noqa: B018


def test_arguments():
    X, y = np.random.default_rng(0).normal(size=(12, 1, 12)), np.arange(12) % 2
    trials = []
    with pytest.warns(DeprecationWarning, match="`tell` is now `callback`") as warned:
        compare({"random": RandomLS2TClassifier(n_blocks=1)}, X, y, folds=2, tell=trials.append)
    assert len(trials) == 1
    assert warned[0].filename == __file__
    values = np.array([[0.0], [np.nan]])
    with pytest.warns(DeprecationWarning, match="`given` is now `observed`"):
        figure = plots.imputation(given=values, filled=np.zeros((2, 1)))
    assert len(figure.axes) == 1
    model, steps = gpvae.GPVAE(2, 2, encoder_sizes=(3,), decoder_sizes=(3,)), torch.zeros(1, 4, 2)
    everything = torch.ones(1, 4, 2, dtype=torch.bool)
    with pytest.warns(DeprecationWarning, match="`seen` is now `visible`"):
        model.elbo(steps, everything, seen=everything)


def test_a_row_is_told_by_its_headline():
    with pytest.warns(DeprecationWarning, match="`told` is now `headline`"):
        assert ROW.told == ROW.headline
