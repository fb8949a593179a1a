"""The models that the shell knows by heart are those of the library."""

import inspect
from dataclasses import fields

import pytest

from cli.shell import run
from seq2tens import estimators
from seq2tens.cli._shared import catalogue
from seq2tens.cli.fit import FitOptions
from seq2tens.cli.impute import ImputeOptions
from seq2tens.experiments.tsc.models import MODELS as TABLE_MODELS

REGISTRIES = {
    "classification": (estimators.MODELS, FitOptions),
    "regression": (estimators.REGRESSORS, FitOptions),
    "imputation": (estimators.IMPUTERS, ImputeOptions),
}


@pytest.mark.parametrize("task", REGISTRIES)
def test_the_catalogue_is_that_of_the_estimators(task):
    registry, verb = REGISTRIES[task]
    options = {field.name for field in fields(verb)}
    assert {name: model.estimator for name, model in catalogue.MODELS[task].items()} == {
        name: kind.__name__ for name, kind in registry.items()
    }
    for name, kind in registry.items():
        model, parameters = catalogue.MODELS[task][name], inspect.signature(kind).parameters
        assert set(model.options) == options & set(parameters), name
        # a head is an object, which nobody can type
        defaults = {k: value.default for k, value in parameters.items() if k not in {*options, "head"}}
        assert list(model.settings) == list(defaults), name
        for key, value in model.settings.items():
            same = isinstance(defaults[key], tuple) if value == () else value == defaults[key]
            assert same, f"{name} {key}"


def test_help_lists_what_can_be_set():
    text = run("fit", "--help").stdout
    assert "  ls2t         since_observed=False devices=1 num_nodes=1 width=64 depth=3 order=2" in text
    assert "  random-ls2t  n_blocks=40 order=3 penalties=… n_jobs=1" in text
    assert "  mean          over=data" in run("impute", "--help").stdout


def test_a_model_has_one_name_everywhere():
    """What the paper's tables call it is what it is with its defaults, and is understood by `fit` too."""
    for name, table_name in catalogue.PAPER_NAMES.items():
        made = TABLE_MODELS[table_name].make(0, "fast", 1)
        kind = estimators.MODELS[name]
        assert type(made) is kind
        assert made.get_params() == kind(random_state=0).get_params()
        assert {catalogue.find(told, "classification") for told in (name, table_name, kind.__name__)} == {
            name
        }
    shown = run("reproduce", "tsc", "--models", "fcn-ls2t", "--datasets", "JapaneseVowels", "--dry-run")
    assert "fcn64-ls2t64-3" in shown.output
