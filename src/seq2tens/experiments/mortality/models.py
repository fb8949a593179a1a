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
RATES = {"dropout": (0.0, 0.1, 0.2, 0.3, 0.4), "spatial_dropout": (0.0, 0.1, 0.2, 0.3, 0.4)}
LEARNING_RATES = {"learning_rate": (1e-3, 5e-4, 2.5e-4, 1e-4)}
STEPS = {"batch_size": (4, 8, 16, 32), **LEARNING_RATES}


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
        found = json.loads(text)
        wanted = sorted(self.space)
        check.require(sorted(found) == wanted, f"`settings` must have the keys {wanted}, got {sorted(found)}")
        return found


def written(settings: Settings) -> str:
    """Settings as text, always the same for the same ones."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"))


def _fcn(in_features: int, **sizes: Any) -> nn.Module:
    return WithHead(FCN(in_features, **sizes), 2)


def _fcn_ls2t(in_features: int, **sizes: Any) -> nn.Module:
    return WithHead(FCNLS2T(in_features, **sizes), 2)


def _irregular(name: str, label: str, own: Settings, space: Space) -> Model:
    """A baseline; of its settings the paper tells none, so these and the space are ours."""
    common = {"width": 64, "dropout": 0.2, "batch_size": 32, "learning_rate": 1e-3}
    ranges = {
        "width": (32, 64, 128),
        "dropout": RATES["dropout"],
        "batch_size": (16, 32, 64),
        **LEARNING_RATES,
    }
    return Model(
        name=name,
        label=label,
        make=NETWORKS[name],
        named=DEFAULT,
        settings={**common, **own},
        space={**ranges, **space},
        complete=False,
    )


_LIST = (
    Model(
        name="fcn-ls2t",
        label="FCN-LS2T",
        make=_fcn_ls2t,
        named=PUBLISHED,
        settings={
            "fcn_width": 64,
            "width": 256,
            "order": 3,
            "depth": 3,
            "weights": "recursive",
            "dropout": 0.3,
            "spatial_dropout": 0.4,
            "batch_size": 32,
            "learning_rate": 1e-4,
        },
        space={
            "fcn_width": (64, 128, 256),
            "width": (64, 128, 256),
            "order": (2, 3, 4),
            "depth": (1, 2, 3),
            "weights": ("recursive", "independent"),
            **RATES,
            **STEPS,
        },
        complete=True,
    ),
    Model(
        name="fcn",
        label="FCN",
        make=_fcn,
        named=PUBLISHED,
        settings={
            "width": 256,
            "dropout": 0.4,
            "spatial_dropout": 0.3,
            "batch_size": 4,
            "learning_rate": 1e-4,
        },
        space={"width": (64, 128, 256), **RATES, **STEPS},
        complete=True,
    ),
    _irregular("gru-simple", "GRU-Simple", {}, {}),
    _irregular("gru-d", "GRU-D", {}, {}),
    _irregular("phased-lstm", "Phased-LSTM", {}, {}),
    _irregular("ip-nets", "IP-Nets", {"n_references": 49}, {"n_references": (25, 49, 97)}),
    _irregular("transformer", "Transformer", {"depth": 2, "heads": 4}, {"depth": (1, 2, 3), "heads": (2, 4)}),
    _irregular("seft", "SeFT-Attn", {"heads": 4}, {"heads": (2, 4, 8)}),
    _irregular(
        "latent-ode", "Latent-ODE", {"latent": 32, "n_grid": 24}, {"latent": (16, 32, 64), "n_grid": (24, 48)}
    ),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}
