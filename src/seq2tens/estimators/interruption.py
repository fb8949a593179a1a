"""Training that leaves a usable estimator when it is interrupted."""

from __future__ import annotations

import warnings
from typing import Any

from seq2tens import training
from seq2tens.training import Recipe, Result


class InterruptedFitWarning(RuntimeWarning):
    """Warns that a fit was interrupted and ended early; the estimator can be used."""


def train(*arguments: Any, recipe: Recipe, stacklevel: int = 5, **options: Any) -> Result:
    """Call `training.fit`; if interrupted after the first epoch, keep the weights so far and warn.

    The result then has `stopped == "interrupted"`. `stacklevel` is that of the warning, which should name the
    line that called `fit`.
    """
    try:
        return training.fit(*arguments, recipe=recipe, **options)
    except training.Interrupted as interruption:
        result = interruption.result
        weights = "the best so far" if recipe.keep_best else "those of the last epoch"
        warnings.warn(
            f"`fit` was interrupted after {result.epochs} epochs; its weights are {weights}, "
            "and `interrupted_` is True",
            InterruptedFitWarning,
            stacklevel=stacklevel,
        )
        return result
