"""The models of the mortality experiment: what they are made from, and the settings they are searched in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from seq2tens import _checks as check
from seq2tens.estimators.networks import WithHead
from seq2tens.models.irregular import NETWORKS
from seq2tens.nn import FCN, FCNLS2T

Settings = Mapping[str, Any]
Space = Mapping[str, tuple[Any, ...]]
# Settings that have a name instead of being written out.
PUBLISHED, DEFAULT = "published", "default"
# Those of the training; all others are the network's.
TRAINING = ("batch_size", "learning_rate")
# What settings are drawn from in a search.
WIDTHS = (64, 128, 256)
RATES = (0.0, 0.1, 0.2, 0.3, 0.4)
BATCH_SIZES = (4, 8, 16, 32)
LEARNING_RATES = (1e-3, 5e-4, 2.5e-4, 1e-4)
# By the name of a setting: the value without a search, and the values of a search.
Choices = Mapping[str, tuple[Any, tuple[Any, ...]]]


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a name stands for.

    Args:
        name: as in the results table.
        label: as in the paper's table.
        make: gives a new network for two classes from the sizes of its input and settings.
        named: the settings that are run without a search, and what they are called.
        space: what each setting is drawn from in a search.
        complete: whether it reads complete channels (see `Preparation`) or the stays as they were measured.
    """

    name: str
    label: str
    make: Callable[..., nn.Module]
    named: str
    settings: Settings
    space: Space
    complete: bool

    def resolve(self, text: str) -> dict[str, Any]:
        """The settings that a cell names or writes out."""
        if text == self.named:
            return dict(self.settings)
        check.require(
            text.startswith("{"),
            f"`settings` of {self.name} must be {self.named!r} or written out as JSON, got {text!r}",
        )
        try:
            settings: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError as error:
            raise check.ArgumentError(f"`settings` must be JSON, got {text!r} ({error})") from error
        keys, names = sorted(settings), sorted(self.space)
        check.require(keys == names, f"`settings` must have the keys {names}, got {keys}")
        return settings


def written(settings: Settings) -> str:
    """Settings as text, always the same for the same ones."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"))


def _published(name: str, label: str, network: Callable[..., nn.Module], choices: Choices) -> Model:
    """A network of the paper, which tells its settings and what they were searched in."""

    def make(in_features: int, **sizes: Any) -> nn.Module:
        return WithHead(network(in_features, **sizes), 2)

    return _model(name, label, make, choices, named=PUBLISHED, complete=True)


def _irregular(name: str, label: str, choices: Choices) -> Model:
    """A baseline; of its settings the paper tells none, so these and the space are ours."""
    common: Choices = {
        "width": (64, (32, 64, 128)),
        "dropout": (0.2, RATES),
        "batch_size": (32, (16, 32, 64)),
        "learning_rate": (1e-3, LEARNING_RATES),
    }
    return _model(name, label, NETWORKS[name], {**common, **choices}, named=DEFAULT, complete=False)


def _model(
    name: str, label: str, make: Callable[..., nn.Module], choices: Choices, *, named: str, complete: bool
) -> Model:
    settings = {name: value for name, (value, _) in choices.items()}
    space = {name: values for name, (_, values) in choices.items()}
    return Model(
        name=name, label=label, make=make, named=named, settings=settings, space=space, complete=complete
    )


_FCN_LS2T: Choices = {
    "fcn_width": (64, WIDTHS),
    "width": (256, WIDTHS),
    "order": (3, (2, 3, 4)),
    "depth": (3, (1, 2, 3)),
    "weights": ("recursive", ("recursive", "independent")),
    "dropout": (0.3, RATES),
    "spatial_dropout": (0.4, RATES),
    "batch_size": (32, BATCH_SIZES),
    "learning_rate": (1e-4, LEARNING_RATES),
}
_FCN: Choices = {
    "width": (256, WIDTHS),
    "dropout": (0.4, RATES),
    "spatial_dropout": (0.3, RATES),
    "batch_size": (4, BATCH_SIZES),
    "learning_rate": (1e-4, LEARNING_RATES),
}
_LIST = (
    _published("fcn-ls2t", "FCN-LS2T", FCNLS2T, _FCN_LS2T),
    _published("fcn", "FCN", FCN, _FCN),
    _irregular("gru-simple", "GRU-Simple", {}),
    _irregular("gru-d", "GRU-D", {}),
    _irregular("phased-lstm", "Phased-LSTM", {}),
    _irregular("ip-nets", "IP-Nets", {"n_references": (49, (25, 49, 97))}),
    _irregular("transformer", "Transformer", {"depth": (2, (1, 2, 3)), "heads": (4, (2, 4))}),
    _irregular("seft", "SeFT-Attn", {"heads": (4, (2, 4, 8))}),
    _irregular("latent-ode", "Latent-ODE", {"latent": (32, (16, 32, 64)), "n_grid": (24, (24, 48))}),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}
