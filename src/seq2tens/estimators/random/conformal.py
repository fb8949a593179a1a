"""How sure predictions are: sets of classes and intervals that hold the truth as often as is asked.

Both compare with scores of training sequences, each predicted by the model that was fitted without its fold,
a stretch of neighbours. This is cross-conformal prediction in its plain form: new sequences are predicted by
the one model of all. For ridge regression, which a few rows more or less hardly change, it covers as asked on
average over training sets; without such stability there is no guarantee (CV+ would have one, of 2·coverage -
1, but predicts with the models of all folds). Scores of rows left out one by one are too low where neighbours
come from one recording.
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
    """How strange each label is, by held-out probabilities, in increasing order."""
    return (1 - probabilities.gather(1, labels[:, None])).sort(dim=0).values


def interval_scores(missed: Float[Tensor, "rows targets"]) -> Float[Tensor, "rows targets"]:
    """How far each held-out prediction was off, in increasing order."""
    return missed.abs().sort(dim=0).values


def prediction_set(
    probabilities: Float[Tensor, "rows classes"], scores: Float[Tensor, "sample 1"], coverage: float
) -> Bool[Tensor, "rows classes"]:
    """The classes that are not stranger than the labels of training sequences were."""
    return 1 - probabilities <= threshold(scores, coverage)


def threshold(scores: Float[Tensor, "sample targets"], coverage: float) -> Float[Tensor, " targets"]:
    """The score that a new sequence exceeds with probability 1 - coverage; infinite if there are too few."""
    check.require(
        isinstance(coverage, float | int) and 0 < coverage < 1,
        f"`coverage` must be between 0 and 1, got {coverage!r}",
    )
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return scores[rank - 1] if rank <= len(scores) else scores.new_full(scores.shape[1:], torch.inf)
