"""Old names work for one release, with a warning that tells the new ones."""

import contextlib
import importlib

import numpy as np
import pytest

from experiments.core.test_rows import ROW
from seq2tens import distributed, training
from seq2tens.estimators import RandomLS2TClassifier
from seq2tens.models import gpvae


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


def test_a_row_is_told_by_its_headline():
    with pytest.warns(DeprecationWarning, match="`told` is now `headline`"):
        assert ROW.told == ROW.headline
