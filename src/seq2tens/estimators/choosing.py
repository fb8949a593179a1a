"""Model comparison: cross-validation within a time budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from seq2tens import _checks as check
from seq2tens._moved import moved_argument
from seq2tens.data import Sequences
from seq2tens.estimators.inputs import as_sequences
from seq2tens.estimators.networks import NetworkClassifier

Fold = tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]


@dataclass(frozen=True)
class Trial:
    """Scores of one model, one per fold, and the seconds of a fit; `skipped` says why it was not run."""

    name: str
    scores: tuple[float, ...] = ()
    seconds: float = 0.0
    skipped: str | None = None

    @property
    def mean(self) -> float:
        """Mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; 0 for a single fold, where it is unknown."""
        n = len(self.scores)
        return float(np.std(self.scores, ddof=1)) / n**0.5 if n > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """Trials in the order in which they were run; `measure` is accuracy or R²."""

    measure: str
    trials: tuple[Trial, ...]

    @property
    def tried(self) -> list[Trial]:
        """Trials that were not skipped, best first."""
        return sorted((trial for trial in self.trials if trial.scores), key=lambda t: -t.mean)

    @property
    def choice(self) -> Trial:
        """The fastest trial whose mean is within one standard error of the best."""
        best = self.tried[0]
        equivalent = [trial for trial in self.tried if trial.mean >= best.mean - best.standard_error]
        return min(equivalent, key=lambda trial: trial.seconds)


@moved_argument("tell", "callback")
def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    folds: int = 3,
    seconds: float = 300.0,
    random_state: int = 0,
    callback: Callable[[Trial], None] | None = None,
) -> Comparison:
    """Cross-validate models on training data within a time budget.

    The first model always runs. A network is skipped if, judged by its second epoch, it would exceed the
    budget, since a model trained for a shorter time says little. Models are also skipped when no time is
    left.

    Args:
        models: unfitted estimators by name; the cheapest should come first.
        X: sequences, in any form that `fit` takes.
        y: labels, or numbers for regressors.
        folds: number of cross-validation folds.
        seconds: the time budget.
        random_state: seed of the split into folds.
        callback: function called with each trial when it is done.
    """
    check.require(len(models) > 0, "`models` must hold at least one model, got none")
    check.require(seconds > 0, f"`seconds` must be above 0, got {seconds}")
    sequences, labels = as_sequences(X), np.asarray(y)
    classifying = is_classifier(next(iter(models.values())))
    parts = split(labels, folds, classifying, random_state)
    end = time.monotonic() + seconds
    trials: list[Trial] = []
    for name, model in models.items():
        trials.append(_trial(name, model, sequences, labels, parts, end if trials else float("inf")))
        if callback is not None:
            callback(trials[-1])
    return Comparison("accuracy" if classifying else "R²", tuple(trials))


def split(y: np.ndarray, folds: int, classifying: bool, random_state: int) -> list[Fold]:
    """Return training and test rows of each fold; stratified for classification."""
    check.require(isinstance(folds, int) and folds > 1, f"`folds` must be at least 2, got {folds}")
    if not classifying:
        check.require(folds <= len(y), f"`folds` must be at most the {len(y)} sequences, got {folds}")
        return list(KFold(folds, shuffle=True, random_state=random_state).split(y))
    classes, counts = np.unique(y, return_counts=True)
    rarest, name = counts.min(), classes.tolist()[int(counts.argmin())]
    check.require(
        rarest >= folds,
        f"`folds` must be at most the {rarest} sequences of the rarest class {name!r}, got {folds}",
    )
    return list(StratifiedKFold(folds, shuffle=True, random_state=random_state).split(y, y))


def _trial(name: str, model: Any, X: Sequences, y: np.ndarray, parts: list[Fold], end: float) -> Trial:
    left = end - time.monotonic()
    needed = _needed(model, X, y, parts) if np.isfinite(left) and left > 0 else 0.0
    if left <= 0 or needed > left:
        return Trial(name, skipped=f"needs about {needed / 60:.1f} min" if needed else "no time was left")
    runs = list(_runs(model, X, y, parts, end))
    return Trial(name, tuple(score for score, _ in runs), float(np.mean([seconds for _, seconds in runs])))


def _runs(
    model: Any, X: Sequences, y: np.ndarray, parts: list[Fold], end: float
) -> Iterator[tuple[float, float]]:
    """Yield score and seconds of a fit for each fold, as long as there is time."""
    for train, test in parts:
        start = time.monotonic()
        fitted = clone(model).fit(X[train], y[train])
        if getattr(fitted, "interrupted_", False):
            raise KeyboardInterrupt
        seconds = time.monotonic() - start
        yield float(fitted.score(X[test], y[test])), seconds
        if time.monotonic() + seconds > end:
            return


def _needed(model: Any, X: Sequences, y: np.ndarray, parts: list[Fold]) -> float:
    """Estimate the seconds for all folds from a network's second epoch (the first one includes warm-up).

    0 for models that are not trained in epochs.
    """
    if not isinstance(model, NetworkClassifier):
        return 0.0
    rows = parts[0][0]
    epoch = clone(model).set_params(epochs=2).fit(X[rows], y[rows]).history_[-1]["seconds"]
    return float(epoch * model._recipe(len(rows)).epochs * len(parts))
