"""The models of the imputation experiment, with the published settings for each data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seq2tens import _checks as check
from seq2tens.models.gpvae import GPVAE, Prior
from seq2tens.training import Constant, Recipe, StepDecay
from seq2tens.training.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the paper says of a data set; `network` is given to `GPVAE`."""

    n_channels: int
    network: Mapping[str, Any]
    length_scale: float
    scale: float
    epochs: int
    schedule: Schedule = field(default_factory=Constant)

    def recipe(self, epochs: int) -> Recipe:
        """Published, with perhaps fewer epochs; the last weights are kept, as nothing was selected."""
        return Recipe(
            epochs=epochs,
            batch_size=64,
            learning_rate=1e-3,
            schedule=self.schedule,
            clip_norm=1e4,
            keep_best=False,
        )


def _frames(image_shape: tuple[int, int, int], **network: Any) -> Settings:
    """Of a data set of images."""
    common = {"latent": 256, "decoder_sizes": (256, 256, 256), "window": 3, "image_shape": image_shape}
    return Settings(
        n_channels=math.prod(image_shape),
        network={**common, **network},
        length_scale=2.0,
        scale=1.0,
        epochs=20,
    )


SETTINGS = {
    "hmnist": _frames((28, 28, 1), encoder_sizes=(256, 256), beta=0.8, likelihood="bernoulli"),
    "sprites": _frames((64, 64, 3), encoder_sizes=(32, 256, 256), beta=0.1),
    "physionet": Settings(
        n_channels=35,
        network={
            "latent": 35,
            "encoder_sizes": (128, 128),
            "decoder_sizes": (256, 256),
            "window": 24,
            "beta": 0.2,
            "bands": "sigmoid",
        },
        length_scale=7.0,
        scale=1.005,
        epochs=40,
        schedule=StepDecay(every=10, factor=0.5, floor=0.1),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a name stands for; `network` is what distinguishes a trained one from the others.

    Args:
        name: as in the results table.
        label: as in the paper's table.
        network: given to `GPVAE`, None for a rule that needs no training.
    """

    name: str
    label: str
    network: Mapping[str, Any] | None = None


_INDEPENDENT = {"prior": Prior("independent"), "covariance": "diagonal"}
_LIST = (
    Model(name="mean", label="Mean imputation"),
    Model(name="forward", label="Forward imputation"),
    Model(name="vae", label="VAE", network={**_INDEPENDENT, "masked": False}),
    Model(name="hi-vae", label="HI-VAE", network=_INDEPENDENT),
    Model(name="gp-vae", label="GP-VAE", network={"encoder": "conv"}),
    Model(name="gp-vae-bls2t", label="GP-VAE (B-LS2T)", network={"encoder": "bls2t"}),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}


def network(dataset: str, model: str) -> GPVAE:
    """A new network with the published settings."""
    check.choice("dataset", dataset, tuple(SETTINGS))
    settings, own = SETTINGS[dataset], MODELS[model].network
    check.require(own is not None, f"`model` must be one that is trained, got {model!r}")
    prior = Prior("cauchy", length_scale=settings.length_scale, scale=settings.scale)
    return GPVAE(settings.n_channels, **{"prior": prior, **settings.network, **(own or {})})
