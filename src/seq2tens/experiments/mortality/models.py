"""The models of the mortality experiment, with their settings and search spaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from torch import nn

from seq2tens import _checks as check
from seq2tens.data.datasets.physionet2012 import Stays
from seq2tens.estimators import WithHead
from seq2tens.experiments.mortality import recipes
from seq2tens.experiments.mortality.data import AsMeasured, Complete, Inputs, ZerosInFront
from seq2tens.models.irregular import NETWORKS
from seq2tens.nn import FCN, FCNLS2T
from seq2tens.training import Recipe

Settings = Mapping[str, Any]
# Names of settings that need not be written out.
PUBLISHED, DEFAULT = "published", "default"
# The settings of the training; all others are those of the network.
TRAINING = ("batch_size", "learning_rate")


class LogUniform(NamedTuple):
    """A log-uniform distribution between two numbers."""

    low: float
    high: float


# The search space of a setting.
Domain = tuple[Any, ...] | LogUniform
# By the name of a setting: its value without a search, and its search space.
Choices = Mapping[str, tuple[Any, Domain]]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A model in one recipe.

    Args:
        make: creates a network for two classes, given the sizes of its input and settings.
        choices: its settings.
        inputs: creates its inputs from the stays.
        training: creates its training recipe from settings and a number of epochs.
    """

    make: Callable[..., nn.Module]
    choices: Choices
    inputs: Callable[[Stays], Inputs]
    training: Callable[[Settings, int], Recipe]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of runs without a search."""
        return {name: value for name, (value, _) in self.choices.items()}

    @property
    def space(self) -> dict[str, Domain]:
        """The search space of each setting."""
        return {name: domain for name, (_, domain) in self.choices.items()}

    def network(self, inputs: Inputs, settings: Settings) -> nn.Module:
        """Create a network for these inputs."""
        sizes = {name: value for name, value in settings.items() if name not in TRAINING}
        return self.make(**inputs.sizes, **sizes)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the experiment.

    Args:
        name: its name in the results table.
        label: its name in the paper's table.
        named: the name of its settings in runs without a search.
        setups: its setup for each recipe, by name.
    """

    name: str
    label: str
    named: str
    setups: Mapping[str, Setup]

    def resolve(self, recipe: str, text: str) -> dict[str, Any]:
        """The settings of a cell, given by name or as JSON."""
        setup = self.setups[recipe]
        if text == self.named:
            return setup.settings
        check.require(
            text.startswith("{"),
            f"`settings` of {self.name} must be {self.named!r} or written out as JSON, got {text!r}",
        )
        try:
            settings: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError as error:
            raise check.ArgumentError(f"`settings` must be JSON, got {text!r} ({error})") from error
        keys, names = sorted(settings), sorted(setup.space)
        check.require(keys == names, f"`settings` must have the keys {names}, got {keys}")
        return settings


def written(settings: Settings) -> str:
    """Settings as canonical JSON."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"))


def _published(
    name: str, label: str, network: Callable[..., nn.Module], choices: Choices, more: Choices
) -> Model:
    """A network of the paper, with the settings and spaces stated there; `more` are those in its code."""

    def published(in_features: int, **sizes: Any) -> nn.Module:
        return WithHead(network(in_features, **sizes), 1, glorot=True)

    def masked(in_features: int, **sizes: Any) -> nn.Module:
        return WithHead(network(in_features, **sizes), 2)

    setups = {
        recipes.PAPER: Setup(
            make=published, choices={**choices, **more}, inputs=ZerosInFront, training=recipes.published
        ),
        recipes.MASKED: Setup(make=masked, choices=choices, inputs=Complete, training=recipes.masked),
    }
    return Model(name=name, label=label, named=PUBLISHED, setups=setups)


def _irregular(
    name: str, label: str, masked: Choices, published: Choices, options: Mapping[str, Any] | None = None
) -> Model:
    """A baseline; as the paper does not state its settings, the default ones and the space `masked` are ours.

    `published` is the search space of the authors of its published numbers, and `options` give its network
    the same inputs as theirs.
    """
    common: Choices = {
        "width": (64, (32, 64, 128)),
        "dropout": (0.2, _RATES),
        "batch_size": (32, (16, 32, 64)),
        "learning_rate": (1e-3, _LEARNING_RATES),
    }
    setups = {
        recipes.PAPER: Setup(
            make=partial(NETWORKS[name], **options or {}),
            choices={**_PUBLISHED_BASELINE, **published},
            inputs=AsMeasured,
            training=recipes.published_baseline,
        ),
        recipes.MASKED: Setup(
            make=NETWORKS[name], choices={**common, **masked}, inputs=AsMeasured, training=recipes.masked
        ),
    }
    return Model(name=name, label=label, named=DEFAULT, setups=setups)


_WIDTHS = (64, 128, 256)
_RATES = (0.0, 0.1, 0.2, 0.3, 0.4)
_BATCH_SIZES = (4, 8, 16, 32)
_LEARNING_RATES = (1e-3, 5e-4, 2.5e-4, 1e-4)
# The authors learn the power, but each step replaces it by its sigmoid, so it converges to the fixed point.
_POWER = 0.659046068
_FCN_LS2T: Choices = {
    "fcn_width": (64, _WIDTHS),
    "width": (256, _WIDTHS),
    "order": (3, (2, 3, 4)),
    "depth": (3, (1, 2, 3)),
    "weights": ("recursive", ("recursive", "independent")),
    "dropout": (0.3, _RATES),
    "spatial_dropout": (0.4, _RATES),
    "batch_size": (32, _BATCH_SIZES),
    "learning_rate": (1e-4, _LEARNING_RATES),
}
_FCN: Choices = {
    "width": (256, _WIDTHS),
    "dropout": (0.4, _RATES),
    "spatial_dropout": (0.3, _RATES),
    "batch_size": (4, _BATCH_SIZES),
    "learning_rate": (1e-4, _LEARNING_RATES),
}
_UNITS = (32, 64, 128, 256, 512, 1024)
_PUBLISHED_BASELINE: Choices = {
    "width": (64, _UNITS),
    "batch_size": (64, (32, 64, 128, 256, 512)),
    "learning_rate": (1e-3, LogUniform(1e-4, 1e-2)),
}
# Recurrent networks have dropout on inputs and states, and none before the last layer.
_DROPPED: Choices = {"input_dropout": (0.2, _RATES), "recurrent_dropout": (0.2, _RATES)}
_NO_DROPOUT = {"dropout": 0.0}
_LIST = (
    _published("fcn-ls2t", "FCN-LS2T", FCNLS2T, _FCN_LS2T, {"normalize": (_POWER, (_POWER,))}),
    _published("fcn", "FCN", FCN, _FCN, {}),
    # Times since observation in raw hours, as published.
    _irregular("gru-simple", "GRU-Simple", {}, _DROPPED, {**_NO_DROPOUT, "fill": "zero", "horizon": 1.0}),
    _irregular("gru-d", "GRU-D", {}, _DROPPED, _NO_DROPOUT),
    _irregular(
        "phased-lstm",
        "Phased-LSTM",
        {},
        {"leak": (0.001, (0.001, 0.005, 0.01)), "horizon": (100.0, (10.0, 100.0, 1000.0))},
        {**_NO_DROPOUT, "fill": "zero", "since_observed": True},
    ),
    _irregular(
        "ip-nets",
        "IP-Nets",
        {"n_references": (49, (25, 49, 97))},
        {**_DROPPED, "n_references": (49, (11, 20, 49, 97)), "batch_size": (32, (16, 32, 64))},
        _NO_DROPOUT,
    ),
    _irregular(
        "transformer",
        "Transformer",
        {"depth": (2, (1, 2, 3)), "heads": (4, (2, 4))},
        {
            "width": (64, _UNITS[1:]),
            "dropout": (0.2, _RATES),
            "depth": (2, (1, 2, 3, 4, 5)),
            "heads": (4, (2, 4, 8)),
        },
    ),
    _irregular(
        "seft",
        "SeFT-Attn",
        {"heads": (4, (2, 4, 8))},
        {
            "dropout": (0.2, _RATES),
            "heads": (4, (2, 4, 8)),
            "batch_size": (64, (64, 128)),
            "learning_rate": (1e-3, LogUniform(5e-4, 1e-3)),
        },
    ),
    _irregular(
        "latent-ode",
        "Latent-ODE",
        {"latent": (32, (16, 32, 64)), "n_grid": (24, (24, 48))},
        {"dropout": (0.2, _RATES), "latent": (32, (16, 32, 64)), "n_grid": (24, (24, 48))},
    ),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}
