"""The inputs of a model: both halves of a data set, padded if necessary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from seq2tens.data import Labelled, Preparation, to_aeon
from seq2tens.estimators import auto_scaling
from seq2tens.experiments.tsc.models import Model


class Halves(NamedTuple):
    """Training and test series, in the format of aeon."""

    train: Any
    test: Any


def collections(train: Labelled, test: Labelled, model: Model) -> Halves:
    """The series as they are, or with zeros at the end for models that need it."""
    halves = [to_aeon(half.sequences) for half in (train, test)]
    longest = max(int(half.sequences.lengths.max()) for half in (train, test))
    shortest = min(int(half.sequences.lengths.min()) for half in (train, test))
    steps = max(longest, model.shortest) if model.equal_lengths else model.shortest
    if shortest < steps:
        halves = [_padded_behind(half, steps, model.equal_lengths) for half in halves]
    return Halves(*halves)


def _padded_behind(series: Any, steps: int, stacked: bool) -> Any:
    padded = [np.pad(x, ((0, 0), (0, max(steps - x.shape[1], 0)))) for x in series]
    return np.stack(padded) if stacked else padded


def published_collections(train: Labelled, test: Labelled) -> Halves:
    """The inputs of the authors' networks: standardised, then padded with zeros in front to equal length.

    Nothing is masked, so a network sees the zeros, and with them the original length.
    """
    preparation = Preparation(auto_scaling(len(train))).fit(train.sequences)
    prepared = [preparation.transform(half.sequences) for half in (train, test)]
    steps = max(int(half.lengths.max()) for half in prepared)
    return Halves(*(np.stack([_padded_in_front(x, steps).T for x in half]) for half in prepared))


def _padded_in_front(
    values: Float[np.ndarray, "time channels"], steps: int
) -> Float[np.ndarray, "steps channels"]:
    return np.pad(values, ((steps - len(values), 0), (0, 0)))
