"""What becomes of an estimator whose training was interrupted."""

from __future__ import annotations

import warnings
from typing import Any

from seq2tens import training
from seq2tens.training import Recipe, Result


class InterruptedFitWarning(RuntimeWarning):
    """A fit has ended early because it was interrupted; the estimator can be used."""


def train(*arguments: Any, recipe: Recipe, **options: Any) -> Result:
    """`training.fit`; interrupted after its first epoch it ends with the weights so far, and a warning.

    `stopped` of the result is then `"interrupted"`.
    """
    try:
        return training.fit(*arguments, recipe=recipe, **options)
    except training.Interrupted as interruption:
        result = interruption.result
        weights = "the best so far" if recipe.keep_best else "those of the last one"
        warnings.warn(
            f"`fit` was interrupted after {result.epochs} epochs; its weights are {weights}, "
            "and `interrupted_` is True",
            InterruptedFitWarning,
            stacklevel=5,
        )
        return result
