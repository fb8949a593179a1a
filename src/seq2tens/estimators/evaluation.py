"""Measures of the quality of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.metrics import average_precision_score, roc_auc_score

from seq2tens._checks import require


@dataclass(frozen=True)
class ClassEvaluation:
    """Measures of one class: `support` is its number of sequences; undefined ratios are None."""

    label: Any
    support: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Evaluation:
    """Measures of a classifier's predictions.

    `balanced_accuracy` is the mean recall of the classes that occur. `auroc` and `auprc` (average precision)
    are those of the second class if there are two, and one-vs-rest means over all classes if there are more.
    They are None unless all classes of the classifier, and no others, occur.
    """

    sequences: int
    accuracy: float
    balanced_accuracy: float
    auroc: float | None
    auprc: float | None
    classes: tuple[ClassEvaluation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data; labels are strings or numbers."""
        data = asdict(self)
        data["classes"] = [row | {"label": _plain(row["label"])} for row in data["classes"]]
        return data


def evaluate(
    labels: Shaped[np.ndarray, " sequences"] | Sequence[Any],
    probabilities: Float[np.ndarray, "sequences classes"],
    classes: Shaped[np.ndarray, " classes"] | Sequence[Any],
) -> Evaluation:
    """Compare true labels with the probabilities of `classes`; the most probable class is the prediction.

    Labels outside `classes` count as errors, and get rows of their own at the end.
    """
    truths, names = _listed(labels), _listed(classes)
    _check_shapes(truths, probabilities, names)
    names += sorted(set(truths) - set(names))
    numbers = {name: i for i, name in enumerate(names)}
    truth = np.array([numbers[label] for label in truths])
    predicted = probabilities.argmax(axis=1)
    rows = tuple(_one_class(name, truth == i, predicted == i) for i, name in enumerate(names))
    auroc, auprc = _areas(truth, probabilities)
    return Evaluation(
        sequences=len(truths),
        accuracy=float(np.mean(truth == predicted)),
        balanced_accuracy=float(np.mean([row.recall for row in rows if row.recall is not None])),
        auroc=auroc,
        auprc=auprc,
        classes=rows,
    )


@dataclass(frozen=True)
class RegressionEvaluation:
    """Measures of a regressor's predictions.

    `rmse` is the root mean squared error, `mae` the mean absolute error, and `r2` the fraction of the
    variance that is explained; it is None if the targets are constant.
    """

    sequences: int
    rmse: float
    mae: float
    r2: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data."""
        return asdict(self)


def evaluate_regression(
    targets: Float[np.ndarray, " sequences"] | Sequence[float],
    predictions: Float[np.ndarray, " sequences"] | Sequence[float],
) -> RegressionEvaluation:
    """Compare true targets with predicted ones."""
    truth, predicted = (np.asarray(values, dtype=np.float64) for values in (targets, predictions))
    require(
        truth.ndim == 1 and len(truth) > 0, f"`targets` must be a list of numbers, got shape {truth.shape}"
    )
    require(
        predicted.shape == truth.shape,
        f"`predictions` must have shape (sequences,) = {truth.shape}, got {predicted.shape}",
    )
    error, spread = predicted - truth, float(np.mean((truth - truth.mean()) ** 2))
    squared = float(np.mean(error**2))
    return RegressionEvaluation(
        sequences=len(truth),
        rmse=squared**0.5,
        mae=float(np.mean(np.abs(error))),
        r2=1 - squared / spread if spread > 0 else None,
    )


def _listed(values: np.ndarray | Sequence[Any]) -> list[Any]:
    """Return a list of Python values; making an array of a list would turn mixed types into text."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _check_shapes(labels: list[Any], probabilities: np.ndarray, classes: list[Any]) -> None:
    require(len(labels) > 0, "`labels` must hold at least one label, got none")
    expected = (len(labels), len(classes))
    require(
        probabilities.shape == expected,
        f"`probabilities` must have shape (sequences, classes) = {expected}, got {probabilities.shape}",
    )


def _one_class(
    label: Any, true: Bool[np.ndarray, " sequences"], predicted: Bool[np.ndarray, " sequences"]
) -> ClassEvaluation:
    hits, support, positives = (int(chosen.sum()) for chosen in (true & predicted, true, predicted))
    return ClassEvaluation(
        label,
        support,
        precision=hits / positives if positives else None,
        recall=hits / support if support else None,
        f1=2 * hits / (support + positives) if support + positives else None,
    )


def _areas(
    truth: Int[np.ndarray, " sequences"], probabilities: Float[np.ndarray, "sequences classes"]
) -> tuple[float | None, float | None]:
    n_classes = probabilities.shape[1]
    if n_classes < 2 or set(truth.tolist()) != set(range(n_classes)):
        return None, None
    counted = [1] if n_classes == 2 else range(n_classes)
    pairs = [(truth == i, probabilities[:, i]) for i in counted]
    auroc, auprc = (
        float(np.mean([score(true, chance) for true, chance in pairs]))
        for score in (roc_auc_score, average_precision_score)
    )
    return auroc, auprc


def _plain(label: Any) -> Any:
    return label if isinstance(label, str | int | float) else str(label)
