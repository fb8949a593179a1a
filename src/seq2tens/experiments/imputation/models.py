"""The models of the imputation experiment, with the published settings for each data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from seq2tens import _checks as check
from seq2tens.models.gpvae import GPVAE, Prior
from seq2tens.training import Constant, Recipe, Schedule, StepDecay


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """The published settings for a data set.

    Attributes:
        data: name of the data to read.
        n_channels: number of channels.
        steps: number of steps of a sequence.
        network: arguments of `GPVAE`.
        length_scale: length scale of the Gaussian processes.
        scale: scale of the Gaussian processes.
        epochs: number of epochs.
        batch_size: sequences per training step.
        schedule: schedule of the learning rate.
        models: models that are run by default.
    """

    data: str
    n_channels: int
    steps: int
    network: Mapping[str, Any]
    length_scale: float
    scale: float
    epochs: int
    batch_size: int = 64
    schedule: Schedule = field(default_factory=Constant)
    models: tuple[str, ...] = ("mean", "forward", "vae", "hi-vae", "gp-vae", "gp-vae-bls2t")

    def recipe(self, epochs: int) -> Recipe:
        """The published recipe with this number of epochs; it keeps the last weights, without selection."""
        return Recipe(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=1e-3,
            schedule=self.schedule,
            clip_norm=1e4,
            keep_best=False,
        )


def _frames(data: str, image_shape: tuple[int, int, int], steps: int, **network: Any) -> PublishedSettings:
    """The settings of a data set of images."""
    common = {"latent": 256, "decoder_sizes": (256, 256, 256), "window": 3, "image_shape": image_shape}
    return PublishedSettings(
        data=data,
        n_channels=math.prod(image_shape),
        steps=steps,
        network={**common, "image_relu": True, **network},
        length_scale=2.0,
        scale=1.0,
        epochs=20,
    )


SETTINGS = {
    "hmnist": _frames("hmnist", (28, 28, 1), 10, encoder_sizes=(256, 256), beta=0.8, likelihood="bernoulli"),
    "sprites": _frames("sprites", (64, 64, 3), 8, encoder_sizes=(32, 256, 256), beta=0.1),
    # The paper's appendix reports this setting in addition to that of its table.
    "sprites-conv256": replace(
        _frames("sprites", (64, 64, 3), 8, encoder_sizes=(256, 256, 256), beta=0.1),
        batch_size=16,
        models=("gp-vae", "gp-vae-bls2t"),
    ),
    "physionet": PublishedSettings(
        data="physionet",
        n_channels=35,
        steps=48,
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
        models=("mean", "forward", "vae", "hi-vae", "gp-vae", "gp-vae-bls2t", "brits"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the experiment.

    Args:
        name: its name in the results table.
        label: its name in the paper's table; those marked as ours are not there.
        trained: whether it is trained in epochs; False for a rule.
        network: arguments of `GPVAE`; None if it is not such a network.
        steps: whether the network needs the number of steps.
    """

    name: str
    label: str
    trained: bool = True
    network: Mapping[str, Any] | None = None
    steps: bool = False


_PRIOR = {"prior": Prior("independent")}
_DENSE = {**_PRIOR, "encoder": "dense", "covariance": "deviations"}
_CONVOLUTION = {**_PRIOR, "covariance": "diagonal", "image_relu": False}
_LIST = (
    Model(name="mean", label="Mean imputation", trained=False),
    Model(name="forward", label="Forward imputation", trained=False),
    Model(name="vae", label="VAE", network={**_DENSE, "masked": False}),
    Model(name="hi-vae", label="HI-VAE", network=_DENSE),
    Model(name="gp-vae", label="GP-VAE", network={"encoder": "conv"}),
    Model(name="gp-vae-bls2t", label="GP-VAE (B-LS2T)", network={"encoder": "bls2t-published"}, steps=True),
    Model(name="brits", label="BRITS"),
    Model(name="ls2t", label="LS2TImputer (ours)"),
    Model(name="data-mean", label="Mean of the data (ours)", trained=False),
    Model(name="vae-conv", label="VAE, convolution (ours)", network={**_CONVOLUTION, "masked": False}),
    Model(name="hi-vae-conv", label="HI-VAE, convolution (ours)", network=_CONVOLUTION),
    Model(
        name="gp-vae-bls2t-no-relu",
        label="GP-VAE (B-LS2T, images without the second ReLU; ours)",
        network={"encoder": "bls2t-published", "image_relu": False},
        steps=True,
    ),
    Model(
        name="gp-vae-bls2t-wide",
        label="GP-VAE (B-LS2T, twice as wide; ours)",
        network={"encoder": "bls2t", "image_relu": False},
    ),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}


def network(dataset: str, model: str) -> GPVAE:
    """Create a network with the published settings."""
    check.choice("dataset", dataset, tuple(SETTINGS))
    settings, overrides = SETTINGS[dataset], MODELS[model].network
    check.require(overrides is not None, f"`model` must be an autoencoder, got {model!r}")
    options: dict[str, Any] = {
        "prior": Prior("cauchy", length_scale=settings.length_scale, scale=settings.scale)
    }
    if MODELS[model].steps:
        options["steps"] = settings.steps
    return GPVAE(settings.n_channels, **{**options, **settings.network, **(overrides or {})})
