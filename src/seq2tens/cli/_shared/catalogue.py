"""All models and their settings as plain data, so that the shell need not import the estimators.

A test compares this catalogue with the estimators.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from seq2tens._errors import did_you_mean
from seq2tens.cli._shell import UserError

Task = Literal["classification", "regression", "imputation"]
Defaults = Mapping[str, object]


@dataclass(frozen=True)
class Entry:
    """A model: its class in `seq2tens.estimators`, the options that it accepts, and its settings for `--set`
    with their defaults; an empty tuple stands for a long one."""

    estimator: str
    options: tuple[str, ...]
    settings: Defaults


_TRAINING = ("epochs", "batch_size", "learning_rate")
_NETWORK = (
    "recipe",
    *_TRAINING,
    "class_weight",
    "scaling",
    "validation_fraction",
    "checkpoint",
    "progress",
    "random_state",
    "device",
)
_ANY_NETWORK: Defaults = {"since_observed": False, "devices": 1, "num_nodes": 1}
_LS2T: Defaults = {"width": 64, "depth": 3, "order": 2, "weights": "recursive"}
_RANDOM: Defaults = {"n_blocks": 40, "order": 3, "penalties": (), "n_jobs": 1}
_VAE = (*_TRAINING, "progress", "random_state", "device")
_ANY_VAE: Defaults = {
    "latent": 16,
    "encoder_sizes": (64, 64),
    "decoder_sizes": (64, 64),
    "window": 9,
    "beta": 0.3,
    "likelihood": "gaussian",
    "image_shape": None,
    "scaling": "channel",
    "hide": 0.5,
    "n_draws": 200,
    "checkpoint": None,
}
_GAPS: Defaults = {
    "hide": "mixed",
    "width": 64,
    "functionals": 32,
    "depth": 2,
    "kernel": 3,
    "dropout": 0.1,
    "checkpoint": None,
}
_GP: Defaults = {"order": 2, "kernel": "cauchy", "length_scale": 2.0, "scale": 1.0}
_PYPOTS = (*_TRAINING, "progress", "random_state", "device")
_ANY_PYPOTS: Defaults = {"patience": 10, "time_limit": None}

MODELS: dict[Task, dict[str, Entry]] = {
    "classification": {
        "fcn-ls2t": Entry(
            "FCNLS2TClassifier",
            _NETWORK,
            {
                **_ANY_NETWORK,
                "fcn_width": 64,
                **_LS2T,
                "time_embedding": True,
                "dropout": 0.0,
                "spatial_dropout": 0.0,
            },
        ),
        "ls2t": Entry("DeepLS2TClassifier", _NETWORK, {**_ANY_NETWORK, **_LS2T, "spatial_dropout": 0.0}),
        "fcn": Entry(
            "FCNClassifier",
            _NETWORK,
            {**_ANY_NETWORK, "width": 128, "dropout": 0.0, "spatial_dropout": 0.0},
        ),
        "resnet": Entry("ResNetClassifier", _NETWORK, {**_ANY_NETWORK, "widths": (64, 128, 128)}),
        "random-ls2t": Entry("RandomLS2TClassifier", ("scaling", "random_state", "class_weight"), _RANDOM),
    },
    "regression": {"random-ls2t": Entry("RandomLS2TRegressor", ("scaling", "random_state"), _RANDOM)},
    "imputation": {
        "ls2t": Entry("LS2TImputer", _VAE, _GAPS),
        "gp-vae": Entry("GPVAEImputer", (*_VAE, "encoder"), {**_ANY_VAE, **_GP}),
        "hi-vae": Entry("HIVAEImputer", _VAE, _ANY_VAE),
        "vae": Entry("VAEImputer", _VAE, _ANY_VAE),
        "mean": Entry("MeanImputer", (), {"over": "data"}),
        "forward": Entry("ForwardImputer", (), {}),
        "linear": Entry("LinearImputer", (), {}),
        "brits": Entry("BRITSImputer", _PYPOTS, {**_ANY_PYPOTS, "width": 64}),
        "saits": Entry(
            "SAITSImputer",
            _PYPOTS,
            {**_ANY_PYPOTS, "depth": 2, "width": 128, "heads": 4, "feed_forward": 128, "dropout": 0.1},
        ),
        "timesnet": Entry(
            "TimesNetImputer",
            _PYPOTS,
            {
                **_ANY_PYPOTS,
                "depth": 2,
                "width": 64,
                "feed_forward": 64,
                "periods": 3,
                "kernels": 5,
                "dropout": 0.1,
            },
        ),
        "imputeformer": Entry(
            "ImputeFormerImputer",
            _PYPOTS,
            {
                **_ANY_PYPOTS,
                "depth": 3,
                "width": 128,
                "embedding": 96,
                "projection": 10,
                "heads": 4,
                "feed_forward": 256,
                "dropout": 0.1,
            },
        ),
        "helix": Entry(
            "HELIXImputer",
            _PYPOTS,
            {
                **_ANY_PYPOTS,
                "depth": 2,
                "width": 256,
                "heads": 8,
                "positions": 16,
                "embedding": 1,
                "dropout": 0.1,
            },
        ),
        "csdi": Entry(
            "CSDIImputer",
            _PYPOTS,
            {
                **_ANY_PYPOTS,
                "depth": 4,
                "width": 64,
                "heads": 8,
                "time_embedding": 128,
                "channel_embedding": 16,
                "step_embedding": 128,
                "diffusion_steps": 50,
                "n_draws": 20,
            },
        ),
    },
}
# `auto` trains this model, and uses linear interpolation instead if that has a smaller error.
AUTO, AUTO_TRAINS = "auto", "ls2t"
# The names in the paper's tables of models with the default sizes.
PAPER_NAMES = {"fcn-ls2t": "fcn64-ls2t64-3", "ls2t": "ls2t64-3", "fcn": "fcn128"}


def find(name: str, task: Task, option: str = "--model") -> str:
    """Find the shell's name of a model from that name, its class name or its name in the paper's tables."""
    models = MODELS[task]
    paper = {paper_name: key for key, paper_name in PAPER_NAMES.items() if key in models}
    classes = {model.estimator: key for key, model in models.items()}
    auto = {AUTO: AUTO_TRAINS} if task == "imputation" else {}
    known = {**auto, **{key: key for key in models}, **paper, **classes}
    if name not in known:
        other_tasks = ", ".join(other for other in MODELS if other != task and name in MODELS[other])
        hint = f"; it is a model for {other_tasks}" if other_tasks else did_you_mean(name, known)
        names = ", ".join([*auto, *models])
        raise UserError(f"`{option}` must be one of {names}{_task_suffix(task)}, got {name!r}{hint}")
    return known[name]


def _task_suffix(task: Task) -> str:
    return " for regression" if task == "regression" else ""


def models_with(option: str, task: Task) -> list[str]:
    """The models that accept an option."""
    return [name for name, model in MODELS[task].items() if option in model.options]


def settings_help(*tasks: Task) -> str:
    """A paragraph for the help of a command: the settings of every model."""
    lines = {name: _listed(model.settings) for task in tasks for name, model in MODELS[task].items()}
    indent = 4 + max(map(len, lines))
    rows = [
        textwrap.fill(f"  {name:<{indent - 4}}  {line}", 98, subsequent_indent=" " * indent)
        for name, line in lines.items()
        if line
    ]
    return "\n".join(["\b", "Names for --set, with their defaults:", *rows])


def _listed(settings: Defaults) -> str:
    return " ".join(f"{name}={'…' if value == () else _written(value)}" for name, value in settings.items())


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
