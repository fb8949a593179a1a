"""Linear models on random features: training solves one linear system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens._moved import moved_attributes
from seq2tens._storage import Tensors
from seq2tens.data import Sequences
from seq2tens.estimators.base import SequenceClassifier
from seq2tens.estimators.inputs import as_labels
from seq2tens.estimators.random import conformal
from seq2tens.estimators.random.base import RandomLS2T
from seq2tens.estimators.random.contributions import Contributions
from seq2tens.estimators.random.exporting import RidgeModule, ValueModule
from seq2tens.estimators.random.learning import Labels
from seq2tens.estimators.random.moments import Moments
from seq2tens.estimators.random.probabilities import (
    as_indicators,
    as_pairs,
    best_for_labels,
    best_inverse_temperature,
)
from seq2tens.estimators.random.ridge import Ridge
from seq2tens.estimators.regression import SequenceRegressor, as_targets, spread_of
from seq2tens.estimators.saving.exporting import Probabilities
from seq2tens.estimators.weighting import class_weights, row_weights

TAGS = {"algorithm_type": "convolution", "capability:multithreading": True}


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2TClassifier(RandomLS2T, SequenceClassifier):
    """Ridge classifier on `RandomLS2TFeatures`: fits in seconds, without tuning.

    Args:
        class_weight: None, `"balanced"` (every class has the same weight) or a weight for each label.

    See `RandomLS2TFeatures` and `RandomLS2T` for the other arguments. Probabilities are a softmax of the
    linear model, with a temperature fitted to held-out predictions for the training sequences.

    A 0/1 array `y` of shape `(n, labels)` is multi-label: predictions have its shape, and `predict_proba`
    returns the probability of each label.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import RandomLS2TClassifier
        >>> rng = np.random.default_rng(0)
        >>> y = np.array(["calm", "wild"] * 10)
        >>> X = [rng.normal(scale=1 + 3 * (label == "wild"), size=(2, rng.integers(5, 9))) for label in y]
        >>> RandomLS2TClassifier(n_blocks=4, random_state=0).fit(X, y).score(X, y)
        1.0
    """

    class_weight: Literal["balanced"] | dict[Any, float] | None = None

    _tags: ClassVar[dict[str, Any]] = TAGS

    multilabel_ = False  # until `fit` has seen several labels

    def predict_set(self, X: Any, coverage: float = 0.9) -> Bool[np.ndarray, "rows classes"]:
        """Return conformal prediction sets: which of `classes_` each sequence may have.

        The true class is in the set with probability `coverage`. A set is empty if no class is as probable as
        the true class was for most training sequences.
        """
        sequences = self._as_in_fit(X)
        self._check_ridge()
        self._check_one_label("a set of classes")
        probabilities = torch.from_numpy(self._predict_proba(sequences))
        return conformal.prediction_set(probabilities, self.scores_, coverage).numpy()

    def _fit(self, X: Sequences, y: Shaped[np.ndarray, " rows"], sample_weight: Any = None) -> None:
        if self.multilabel_:
            return self._fit_labels(X, y, sample_weight)
        labels = torch.from_numpy(np.searchsorted(self.classes_, y))
        weights = row_weights(sample_weight, labels)
        by_class = class_weights(self.class_weight, self.classes_, labels, weights)
        total = torch.ones(len(labels)) if weights is None else weights
        if by_class is not None:
            total = total * by_class[labels]
        if self.head is not None:
            return self._learn_head(X, labels.numpy(), total)
        targets = 2.0 * torch.nn.functional.one_hot(labels, self.n_classes_) - 1
        held_out, rows = self._learn(X, targets, total / total.mean(), labels.numpy())
        return self._note_held_out(held_out, labels[rows], total[rows])

    def _fit_labels(self, X: Sequences, y: Int[np.ndarray, "rows labels"], sample_weight: Any) -> None:
        """Fit to several labels per sequence."""
        check.require(
            self.head is None and self.class_weight is None,
            "`head` and `class_weight` must be None for several labels, "
            f"got {self.head!r} and {self.class_weight!r}",
        )
        weights = row_weights(sample_weight, torch.zeros(len(y), dtype=torch.int64))
        total = torch.ones(len(y)) if weights is None else weights
        present = torch.from_numpy(y)
        one_stratum = np.zeros(len(y), dtype=int)
        held_out, rows = self._learn(X, 2.0 * present - 1, total / total.mean(), one_stratum)
        self.inverse_temperature_ = best_for_labels(held_out, present[rows], total[rows])
        self.scores_ = torch.empty(0, 1, dtype=torch.float64)

    def _check_y(
        self, y: Any, n_cases: int, update_classes: bool = True, allow_single_class: bool = False
    ) -> Shaped[np.ndarray, "rows ..."]:
        if np.ndim(y) != 2 or np.asarray(y).dtype.kind not in "biuf":
            self.multilabel_ = self.multilabel_ and not update_classes
            return super()._check_y(y, n_cases, update_classes, allow_single_class)
        indicators = as_indicators(y, n_cases)
        if update_classes:
            self.multilabel_ = True
            self._set_classes(np.arange(indicators.shape[1]))
        return indicators

    def _check_one_label(self, purpose: str) -> None:
        check.require(
            not self.multilabel_, f"`y` must have one label per sequence for {purpose}, got several"
        )

    def _note_held_out(
        self, decisions: Float[Tensor, "rows classes"], labels: Tensor, weights: Tensor
    ) -> None:
        self.inverse_temperature_ = best_inverse_temperature(decisions, labels, weights)
        self.scores_ = conformal.class_scores(self._probabilities(decisions), labels)

    def _target_names(self) -> tuple[Any, ...]:
        return tuple(self.classes_.tolist())

    def _check_labels(self, y: Any, n: int) -> Labels:
        check.require(
            self.head is None and self.class_weight is None,
            "`head` and `class_weight` must be None to update a model, "
            f"got {self.head!r} and {self.class_weight!r}",
        )
        return as_labels(y, n)

    def _register_targets(self, labels: Labels) -> None:
        known = getattr(self, "classes_", labels[:0])
        check.require(
            known.dtype.kind == labels.dtype.kind,
            f"`y` must hold labels of the same type as before, {known.dtype}, got {labels.dtype}",
        )
        classes = np.unique(np.concatenate([known, labels]))
        check.require(len(classes) > 1, f"`y` must have at least 2 classes, got {classes.tolist()}")
        if hasattr(self, "moments_"):
            self.moments_.rearrange(np.searchsorted(classes, known).tolist(), len(classes))
        self._set_classes(classes)

    def _encode(self, labels: Labels) -> Float[Tensor, "rows classes"]:
        """Encode the class as 1 and all others as 0, so that a class added later is 0 in all earlier rows."""
        unknown = np.setdiff1d(labels, self.classes_)
        check.require(len(unknown) == 0, f"`y` must hold classes that were learned, got {unknown.tolist()}")
        codes = torch.from_numpy(np.searchsorted(self.classes_, labels))
        return torch.nn.functional.one_hot(codes, self.n_classes_).float()

    def _strata(self, labels: Labels) -> np.ndarray:
        return np.searchsorted(self.classes_, labels)

    def _calibrate_uncertainty(self, held_out: Float[Tensor, "rows classes"], labels: Labels) -> None:
        codes = torch.from_numpy(np.searchsorted(self.classes_, labels))
        self._note_held_out(2 * held_out - 1, codes, torch.ones(len(codes)))

    def _linear_map(self, solution: Float[Tensor, "1+features classes"]) -> Ridge:
        """Convert a solution for targets 0 and 1 to one for -1 and 1."""
        doubled = 2 * solution
        doubled[0] -= 1
        return super()._linear_map(doubled)

    def _merge_sums(self, other: Moments, classes: np.ndarray | None) -> None:
        assert classes is not None
        self._register_targets(classes)
        aligned = replace(other)
        aligned.rearrange(np.searchsorted(self.classes_, classes).tolist(), self.n_classes_)
        super()._merge_sums(aligned, classes)

    __getattr__ = moved_attributes({"sharpness_": "inverse_temperature_"})

    def _predict_proba(self, X: Sequences) -> Float[np.ndarray, "rows classes"]:
        if self.head is not None:
            return self.head_.probabilities(self._table(X), self.n_classes_)
        return self._probabilities(self._decide(X)).numpy()

    def _predict(self, X: Sequences) -> Shaped[np.ndarray, "rows ..."]:
        return (self._predict_proba(X) > 0.5).astype(np.int64) if self.multilabel_ else super()._predict(X)

    def _probabilities(self, decisions: Float[Tensor, "rows classes"]) -> Float[Tensor, "rows classes"]:
        if self.multilabel_:
            return torch.softmax(as_pairs(decisions.double()) * self.inverse_temperature_, dim=-1)[..., 1]
        return torch.softmax(decisions.double() * self.inverse_temperature_, dim=1)

    def _output_module(self) -> nn.Module:
        self._check_ridge()
        self._check_one_label("an export")
        return Probabilities(RidgeModule(self.features_, self.ridge_), self.inverse_temperature_)

    def _facts(self) -> dict[str, Any]:
        facts = {"sharpness": self.inverse_temperature_, "multilabel": self.multilabel_}
        return {**self.features_._facts(), **super()._facts(), **facts}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self._restore_model(tensors, facts)
        self.inverse_temperature_ = facts["sharpness"]
        self.multilabel_ = facts.get("multilabel", False)  # absent from older models


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2TRegressor(RandomLS2T, SequenceRegressor):
    """Ridge regression on `RandomLS2TFeatures`; see `RandomLS2TFeatures` and `RandomLS2T` for the arguments.

    Several targets, `y` of shape `(n, targets)`, share the features and the penalty.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import RandomLS2TRegressor
        >>> rng = np.random.default_rng(0)
        >>> y = rng.uniform(size=40)
        >>> X = [np.cumsum(rng.normal(value, 0.1, size=(1, 20)), axis=1) for value in y]
        >>> RandomLS2TRegressor(n_blocks=4, random_state=0).fit(X, y).score(X, y) > 0.9
        True
    """

    _tags: ClassVar[dict[str, Any]] = TAGS

    _onnx_output: ClassVar[str] = "prediction"

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float[np.ndarray, "rows *targets 2"]:
        """Return lower and upper ends of intervals that contain the value with probability `coverage`."""
        sequences = self._as_in_fit(X)
        self._check_ridge()
        middle = self._predict(sequences)
        reach = self.spread_ * conformal.threshold(self.scores_, coverage).numpy()
        bounds = np.stack([middle - reach, middle + reach], axis=-1)
        return bounds[:, 0] if self.n_targets_ is None else bounds

    def _fit(self, X: Sequences, y: Float[np.ndarray, "rows targets"], sample_weight: Any = None) -> None:
        weights = row_weights(sample_weight, torch.zeros(len(y), dtype=torch.int64))
        total = torch.ones(len(y)) if weights is None else weights
        if self.head is not None:
            return self._learn_head(X, y[:, 0] if self.n_targets_ is None else y, total)
        self._register_targets(y)
        held_out, rows = self._learn(X, self._encode(y), total, self._strata(y))
        return self._calibrate_uncertainty(held_out, y[rows])

    def _predict(self, X: Sequences) -> Float[np.ndarray, "rows targets"]:
        if self.head is not None:
            return np.asarray(self.head_.predict(self._table(X))).reshape(len(X), -1)
        return self.level_ + self.spread_ * self._decide(X).double().numpy()

    def _output_module(self) -> nn.Module:
        self._check_ridge()
        return ValueModule(RidgeModule(self.features_, self.ridge_), self.level_, self.spread_)

    def _target_names(self) -> tuple[Any, ...]:
        return ("value",) if self.n_targets_ is None else tuple(range(self.n_targets_))

    def _in_units(self, parts: Contributions) -> Contributions:
        baseline = self.level_ + self.spread_ * parts.baseline
        return replace(parts, values=self.spread_ * parts.values, baseline=baseline)

    def _check_labels(self, y: Any, n: int) -> Labels:
        check.require(self.head is None, f"`head` must be None to update a model, got {self.head!r}")
        values = as_targets(y, n)
        n_targets = None if values.ndim == 1 else values.shape[1]
        known = getattr(self, "n_targets_", n_targets)
        check.require(n_targets == known, f"`y` must have {known or 'no'} columns as before, got {n_targets}")
        self.n_targets_ = n_targets
        return values.reshape(n, -1)

    def _register_targets(self, labels: Labels) -> None:
        """Set mean and spread, which standardise the targets, from the first values; then they are fixed."""
        if not hasattr(self, "level_"):
            self.level_, self.spread_ = labels.mean(axis=0), spread_of(labels)

    def _sums_of(self, other: RandomLS2TRegressor) -> Moments:
        """Convert sums of targets that another model has standardised by its own first values."""
        scale, shift = other.spread_ / self.spread_, (other.level_ - self.level_) / self.spread_
        return other.moments_.recoded(torch.from_numpy(scale), torch.from_numpy(shift))

    def _encode(self, labels: Labels) -> Float[Tensor, "rows targets"]:
        return torch.from_numpy((labels - self.level_) / self.spread_).float()

    def _calibrate_uncertainty(self, held_out: Float[Tensor, "rows targets"], labels: Labels) -> None:
        self.scores_ = conformal.interval_scores(held_out.double() - self._encode(labels))

    def _facts(self) -> dict[str, Any]:
        facts = {"level": self.level_.tolist(), "spread": self.spread_.tolist()}
        return {**self.features_._facts(), **super()._facts(), **facts}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self._restore_model(tensors, facts)
        self.level_, self.spread_ = (np.atleast_1d(facts[name]) for name in ("level", "spread"))
