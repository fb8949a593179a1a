"""Training recipes: the authors' for the paper's models, and those of Horn et al. for the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seq2tens.training import Plateau, Recipe

# PAPER is as published: the authors' networks see zeros in front of every stay. MASKED has masks, and our own
# inputs and training.
PAPER, MASKED = "paper", "paper-masked"
RECIPES = (PAPER, MASKED)
# The default of Keras, with which all published numbers were computed.
KERAS_EPS = 1e-7


def masked(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """The recipe in the paper: balanced batches, early stopping, and the rate is halved on a plateau."""
    return _recipe(settings, epochs, Plateau(patience=10, factor=0.5, floor=1e-4), patience=50)


def published(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """The recipe of the authors, who trained with Keras."""
    schedule = Plateau(patience=10, factor=0.5, floor=1e-4)
    return _recipe(settings, epochs, schedule, patience=50, eps=KERAS_EPS)


def published_baseline(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """The recipe of Horn et al., whose numbers for the baselines the paper quotes."""
    schedule = Plateau(patience=15, factor=0.5, floor=1e-5)
    return _recipe(settings, epochs, schedule, patience=30, eps=KERAS_EPS, sampling="oversampled")


def _recipe(
    settings: Mapping[str, Any], epochs: int, schedule: Plateau, *, patience: int, **others: Any
) -> Recipe:
    """The common part: as many cases of either class, and the weights with the best validation AUPRC."""
    return Recipe(
        epochs=epochs,
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        schedule=schedule,
        monitor="validation_auprc",
        mode="max",
        patience=patience,
        **{"sampling": "balanced", **others},
    )
