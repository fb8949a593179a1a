"""Conformal prediction: sets of classes and intervals that contain the truth with a given probability.

Both use scores of training sequences, each predicted by a model fitted without its fold, a run of
neighbouring rows. This is cross-conformal prediction in its plain form: new sequences are predicted by the
one model fitted to all of them. Ridge regression hardly changes with a few rows more or less, so the coverage
holds on average over training sets. Without such stability there is no guarantee (CV+ would have one, of
2·coverage - 1, but predicts with the models of all folds). Leave-one-out scores would be too low where
neighbouring rows come from one recording.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check


def class_scores(
    probabilities: Float[Tensor, "rows classes"], labels: Int[Tensor, " rows"]
) -> Float[Tensor, "rows 1"]:
    """Return 1 minus the held-out probability of each label, in increasing order."""
    return (1 - probabilities.gather(1, labels[:, None])).sort(dim=0).values


def interval_scores(residuals: Float[Tensor, "rows targets"]) -> Float[Tensor, "rows targets"]:
    """Return the absolute errors of held-out predictions, in increasing order."""
    return residuals.abs().sort(dim=0).values


def prediction_set(
    probabilities: Float[Tensor, "rows classes"], scores: Float[Tensor, "sample 1"], coverage: float
) -> Bool[Tensor, "rows classes"]:
    """Return the classes whose score does not exceed the threshold of the training scores."""
    return 1 - probabilities <= threshold(scores, coverage)


def threshold(scores: Float[Tensor, "sample targets"], coverage: float) -> Float[Tensor, " targets"]:
    """Return the score exceeded with probability 1 - coverage; infinite if there are too few scores."""
    check.require(
        isinstance(coverage, float | int) and 0 < coverage < 1,
        f"`coverage` must be between 0 and 1, got {coverage!r}",
    )
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return scores[rank - 1] if rank <= len(scores) else scores.new_full(scores.shape[1:], torch.inf)
