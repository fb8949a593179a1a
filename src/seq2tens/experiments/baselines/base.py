"""The base class of the baselines on scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.utils.parallel import Parallel

from seq2tens import _checks as check
from seq2tens.data import Preparation, Sequences
from seq2tens.estimators import PlainClassifier, RandomState, seed_of

Labels = Int[np.ndarray, " rows"]
Probabilities = Float[np.ndarray, "rows classes"]
Series = list[Float[np.ndarray, "time channels"]]


@dataclass(kw_only=True, eq=False, repr=False)
class BaselineClassifier(PlainClassifier):
    """The base class of baselines.

    Subclasses implement `_learn(series, labels, seed)`, where labels are indices of classes, and
    `_probabilities(series)`.

    Args:
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None).
        n_jobs: number of threads; -1 uses all cores.
        random_state: an integer, a numpy `RandomState` or None.
    """

    scaling: Literal["channel", "sequence"] | None = "channel"
    n_jobs: int = 1
    random_state: RandomState = None

    _tags: ClassVar[dict[str, Any]] = {"capability:multithreading": True}

    def _fit(self, X: Sequences, y: Shaped[np.ndarray, " rows"]) -> None:
        seed = seed_of(self.random_state)
        self.preparation_ = Preparation(self.scaling).fit(X)
        self._learn(self._series(X), np.searchsorted(self.classes_, y), seed)

    def _predict_proba(self, X: Sequences) -> Probabilities:
        return self._probabilities(self._series(X))

    def _series(self, X: Sequences) -> Series:
        return [sequence.astype(np.float64) for sequence in self.preparation_.transform(X)]

    def _parallel(self, calls: Any) -> list[Any]:
        return Parallel(n_jobs=self.n_jobs, prefer="threads")(calls)

    def _one_hot(self, labels: Labels) -> Probabilities:
        """One-hot probabilities, for a classifier without probabilities."""
        return np.eye(self.n_classes_)[labels]

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        raise NotImplementedError

    def _probabilities(self, series: Series) -> Probabilities:
        raise NotImplementedError


def differences(values: Float[np.ndarray, "time channels"]) -> Float[np.ndarray, "time channels"]:
    """The difference of each step from the previous one; 0 at the first."""
    return np.diff(values, axis=0, prepend=values[:1])


def check_grid(name: str, values: Any, low: float = 0) -> None:
    """Require at least one number, all above `low`."""
    check.require(
        len(values) > 0 and all(low < value < float("inf") for value in values),
        f"`{name}` must hold at least one value, all above {low}, got {values!r}",
    )


def lengths_of(series: Series) -> Int[np.ndarray, " series"]:
    """The number of steps of each series."""
    return np.array([len(values) for values in series])


def balanced_sample(labels: Labels, size: int, seed: int) -> Int[np.ndarray, " sample"]:
    """At most `size` rows in increasing order, with classes as balanced as possible."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    ranks = np.empty(len(labels), dtype=int)
    for label in np.unique(labels):
        members = shuffled[labels[shuffled] == label]
        ranks[members] = np.arange(len(members))
    return np.sort(shuffled[np.argsort(ranks[shuffled], kind="stable")][:size])
