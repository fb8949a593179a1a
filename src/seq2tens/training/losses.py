"""The interface of losses, and cross-entropy for classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.training.recipe import Recipe


class Loss(NamedTuple):
    """The loss of a batch.

    `mean` is differentiated. `weight` is the weight of the batch in the mean of an epoch, usually its number
    of rows. Validation metrics are computed from `outputs`, whose first axis is the rows.
    """

    mean: Tensor
    weight: float
    outputs: tuple[Tensor, ...] = ()


# A loss may return a plain tuple as well.
LossValue = Loss | tuple[Tensor, float] | tuple[Tensor, float, tuple[Tensor, ...]]
LossFunction = Callable[[nn.Module, Any], LossValue]
Forward = Callable[[nn.Module, Any], tuple[Tensor, ...]]


class CrossEntropy:
    """Cross-entropy of the logits and labels 0, 1, … that `forward(model, batch)` returns.

    A weight, of a class or of a row, multiplies the loss of a row, and the sum is divided by the number of
    rows. If it were divided by the sum of weights in the batch, the influence of a row would depend on the
    other rows of its batch. With row weights whose mean over the data is 1, the mean over the data is that of
    data in which each row is repeated in proportion to its weight.

    Args:
        forward: calls the model; returns logits `(rows, classes)`, labels `(rows,)` and optionally weights
            `(rows,)`.
        class_weights: one weight per class.
        label_smoothing: fraction of the target that is spread evenly over the classes.
    """

    def __init__(
        self,
        forward: Forward,
        *,
        class_weights: Float[Tensor, " classes"] | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        check.between("label_smoothing", label_smoothing, 0, 1, low_included=True)
        self.forward, self.class_weights, self.label_smoothing = forward, class_weights, label_smoothing

    @classmethod
    def of(cls, recipe: Recipe, forward: Forward, labels: Any) -> CrossEntropy:
        """Build the loss that a recipe specifies; class weights come from the labels of the training set."""
        weights = class_weights(labels) if recipe.class_weights else None
        return cls(forward, class_weights=weights, label_smoothing=recipe.label_smoothing)

    def __call__(self, model: nn.Module, batch: Any) -> Loss:
        """Return the mean over the batch, with logits and labels as outputs."""
        logits, labels, *row_weights = self.forward(model, batch)
        each = nn.functional.cross_entropy(
            logits, labels, reduction="none", label_smoothing=self.label_smoothing
        )
        if self.class_weights is not None:
            each = each * self.class_weights.to(each)[labels]
        for weight in row_weights:
            each = each * weight.to(each)
        return Loss(each.mean(), len(labels), (logits, labels))


def class_weights(
    labels: Int[Tensor, " rows"] | Any, row_weights: Float[Tensor, " rows"] | Any = None
) -> Float[Tensor, " classes"]:
    """Return weights that balance the classes and whose mean over the rows is 1.

    Labels are 0, 1, …, and each of them must occur. With `row_weights`, each row counts with its weight.
    """
    codes = np.asarray(labels)
    check.require(
        codes.ndim == 1 and codes.size > 0 and np.issubdtype(codes.dtype, np.integer),
        f"`labels` must be integers with one axis and at least one row, got {codes.dtype} {codes.shape}",
    )
    check.require(int(codes.min()) >= 0, f"`labels` must be at least 0, got {codes.min()}")
    counts = np.bincount(codes, None if row_weights is None else np.asarray(row_weights, dtype=np.float64))
    empty = np.flatnonzero(counts == 0)
    check.require(
        len(empty) == 0, f"`labels` must contain every class up to {len(counts) - 1}, got none of {empty}"
    )
    return torch.from_numpy(counts.sum() / (len(counts) * counts)).float()


def check_honored(loss: LossFunction, recipe: Recipe) -> None:
    """Require that the loss follows the settings of the recipe, rather than silently ignoring them."""
    weighted = getattr(loss, "class_weights", None) is not None
    smoothing = getattr(loss, "label_smoothing", 0.0)
    check.require(
        weighted == recipe.class_weights,
        f"`loss` must have `class_weights` exactly if the recipe asks for them ({recipe.class_weights}), "
        f"got {'some' if weighted else 'none'}; `CrossEntropy.of(recipe, ...)` agrees with its recipe",
    )
    check.require(
        smoothing == recipe.label_smoothing,
        f"`loss.label_smoothing` must be the recipe's {recipe.label_smoothing}, got {smoothing}",
    )
