"""How models are trained: those of the paper as its authors did, baselines as those who published them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seq2tens.training import Plateau, Recipe

# As published: the authors' networks see zeros in front of every stay. The other has masks, and inputs and
# training of our own.
PAPER, MASKED = "paper", "paper-masked"
RECIPES = (PAPER, MASKED)
# Of Keras, with which all published numbers were made.
KERAS_EPS = 1e-7


def masked(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """The paper's: balanced batches, early stopping, half the rate where nothing gets better."""
    return _recipe(settings, epochs, Plateau(patience=10, factor=0.5, floor=1e-4), patience=50)


def published(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """That of the authors, who trained with Keras."""
    schedule = Plateau(patience=10, factor=0.5, floor=1e-4)
    return _recipe(settings, epochs, schedule, patience=50, eps=KERAS_EPS)


def published_baseline(settings: Mapping[str, Any], epochs: int) -> Recipe:
    """That of Horn et al., whose numbers for the baselines the paper quotes."""
    schedule = Plateau(patience=15, factor=0.5, floor=1e-5)
    return _recipe(settings, epochs, schedule, patience=30, eps=KERAS_EPS, sampling="oversampled")


def _recipe(
    settings: Mapping[str, Any], epochs: int, schedule: Plateau, *, patience: int, **others: Any
) -> Recipe:
    """What all have in common: the same number of both classes, and the best validation AUPRC is kept."""
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
