"""Linear models on random features: no training but one linear system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from aeon.utils.validation import check_n_jobs
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from seq2tens._moved import warn_moved
from seq2tens._storage import Tensors
from seq2tens.data import Sequences
from seq2tens.estimators.base import SequenceClassifier
from seq2tens.estimators.inputs import as_sequences
from seq2tens.estimators.random.explanation import Explanation, explain_features
from seq2tens.estimators.random.exporting import RidgeModule, ValueModule
from seq2tens.estimators.random.features import RandomLS2TFeatures
from seq2tens.estimators.random.ridge import (
    PENALTIES,
    Ridge,
    batches,
    check_penalties,
    fit_ridge,
    torch_threads,
)
from seq2tens.estimators.regression import SequenceRegressor
from seq2tens.estimators.saving import plain
from seq2tens.estimators.saving.exporting import Probabilities
from seq2tens.estimators.seeds import RandomState, seed_of
from seq2tens.estimators.weighting import class_weights, row_weights

# Matrices of so few rows are done with before threads have found together.
FEW = 1024
TAGS = {"algorithm_type": "convolution", "capability:multithreading": True}
# Candidates for the inverse temperature of the softmax.
INVERSE_TEMPERATURES = tuple(2.0 ** (k / 2) for k in range(-4, 15))


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2T:
    """What the classifier and the regressor have in common.

    Args:
        n_blocks: of random features; each gives 128 features and 64 more per level above the first.
        order: highest level.
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None).
        penalties: of the coefficients, per feature; leave-one-out chooses one. With more than 2048 sequences
            it looks at a random sample of that many.
        n_jobs: threads; -1 means all.
        random_state: an integer, a numpy `RandomState` or None.

    After `fit` there are `features_`, `ridge_` (coefficients, intercept, penalty), `scaler_` and
    `n_channels_`.
    """

    n_blocks: int = 40
    order: int = 3
    scaling: Literal["channel", "sequence"] | None = "channel"
    penalties: Sequence[float] = PENALTIES
    n_jobs: int = 1
    random_state: RandomState = None

    _test_params: ClassVar[dict[str, Any]] = {"n_blocks": 2, "random_state": 0}

    def explain(self, X: Any = None, top: int = 10) -> list[Explanation]:
        """What the features with the largest coefficients look at, the largest first.

        With sequences, also at which steps of each of them: a feature of level m looks at m steps.
        """
        self._check_is_fitted()  # type: ignore[attr-defined]
        sequences = None if X is None else as_sequences(X, self.encoding_)  # type: ignore[attr-defined]
        names = self.variable_names_ or ()  # type: ignore[attr-defined]
        return explain_features(self.features_, self.ridge_.coefficients, sequences, top, names)

    def _new_features(self, seed: int) -> RandomLS2TFeatures:
        return RandomLS2TFeatures(
            n_blocks=self.n_blocks,
            order=self.order,
            scaling=self.scaling,
            n_jobs=self.n_jobs,
            random_state=seed,
        )

    def _learn(self, X: Sequences, targets: Tensor, weights: Tensor) -> None:
        penalties, seed = check_penalties(self.penalties), seed_of(self.random_state)
        self.features_ = self._new_features(seed).fit(X)
        self.preparation_ = self.features_.preparation_
        with torch_threads(self._threads(len(X))), torch.no_grad():
            rng = np.random.default_rng(seed)
            self.ridge_ = fit_ridge(lambda rows: self._table(X[rows]), targets, weights, rng, penalties)

    def _threads(self, n: int) -> int:
        """For matrices with so many rows."""
        return check_n_jobs(self.n_jobs) if n > FEW else 1

    def _table(self, X: Sequences) -> Float[Tensor, "rows features"]:
        return torch.from_numpy(self.features_._transform(X))

    @torch.no_grad()
    def _decide(self, X: Sequences) -> Float[Tensor, "rows targets"]:
        with torch_threads(self._threads(len(X))):
            return torch.cat([self.ridge_(self._table(X[rows])) for rows in batches(len(X))])

    def _tensors(self) -> Tensors:
        return plain.join(features=self.features_._tensors(), ridge=self.ridge_.tensors())

    def _restore_model(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        self.features_ = self._new_features(facts["seed"])
        self.features_._restore(plain.split(tensors, "features"), facts)
        self.features_.is_fitted = True
        self.preparation_ = self.features_.preparation_
        self.ridge_ = Ridge.from_tensors(plain.split(tensors, "ridge"))


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2TClassifier(RandomLS2T, SequenceClassifier):
    """Ridge regression to the classes on `RandomLS2TFeatures`: seconds to fit, no tuning.

    Args:
        class_weight: None, `"balanced"` (every class counts the same) or a weight for each label.

    The other arguments are those of `RandomLS2TFeatures`, and `penalties`. Probabilities are a softmax of the
    linear model, as steep as suits training sequences left out in turn.

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

    def _fit(self, X: Sequences, y: Shaped[np.ndarray, " rows"], sample_weight: Any = None) -> None:
        labels = torch.from_numpy(np.searchsorted(self.classes_, y))
        weights = row_weights(sample_weight, labels)
        by_class = class_weights(self.class_weight, self.classes_, labels, weights)
        total = torch.ones(len(labels)) if weights is None else weights
        if by_class is not None:
            total = total * by_class[labels]
        targets = 2.0 * torch.nn.functional.one_hot(labels, self.n_classes_) - 1
        self._learn(X, targets, total / total.mean())
        assert self.ridge_.held_out is not None
        rows = self.ridge_.sample
        self.inverse_temperature_ = best_inverse_temperature(self.ridge_.held_out, labels[rows], total[rows])

    def __getattr__(self, name: str) -> Any:
        # For one release. No property: scikit-learn looks at all of these in every `dir`, and would warn.
        if name != "sharpness_":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self.inverse_temperature_
        warn_moved("sharpness_", "inverse_temperature_")
        return value

    def _predict_proba(self, X: Sequences) -> Float[np.ndarray, "rows classes"]:
        return torch.softmax(self._decide(X).double() * self.inverse_temperature_, dim=1).numpy()

    def _output_module(self) -> nn.Module:
        return Probabilities(RidgeModule(self.features_, self.ridge_), self.inverse_temperature_)

    def _facts(self) -> dict[str, Any]:
        return {**self.features_._facts(), **super()._facts(), "sharpness": self.inverse_temperature_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self._restore_model(tensors, facts)
        self.inverse_temperature_ = facts["sharpness"]


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2TRegressor(RandomLS2T, SequenceRegressor):
    """Ridge regression on `RandomLS2TFeatures`, with its arguments and `penalties`.

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

    def _fit(self, X: Sequences, y: Float[np.ndarray, "rows targets"], sample_weight: Any = None) -> None:
        values = torch.from_numpy(y)
        weights = row_weights(sample_weight, torch.zeros(len(values), dtype=torch.int64))
        level, spread = values.mean(dim=0), values.std(dim=0, correction=0)
        spread = torch.where(spread > 0, spread, 1.0)
        self.level_, self.spread_ = (self._per_target(numbers) for numbers in (level, spread))
        targets = ((values - level) / spread).float()
        self._learn(X, targets, torch.ones(len(values)) if weights is None else weights)

    def _per_target(self, numbers: Float[Tensor, " targets"]) -> Any:
        """As plain numbers, a list where there are several targets."""
        return numbers.tolist() if self.n_targets_ is not None else float(numbers)

    def _predict(self, X: Sequences) -> Float[np.ndarray, "rows targets"]:
        return np.array(self.level_) + np.array(self.spread_) * self._decide(X).double().numpy()

    def _output_module(self) -> nn.Module:
        return ValueModule(RidgeModule(self.features_, self.ridge_), self.level_, self.spread_)

    def _facts(self) -> dict[str, Any]:
        own = {"level": self.level_, "spread": self.spread_}
        return {**self.features_._facts(), **super()._facts(), **own}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self._restore_model(tensors, facts)
        self.level_, self.spread_ = facts["level"], facts["spread"]


def best_inverse_temperature(scores: Float[Tensor, "rows classes"], labels: Tensor, weights: Tensor) -> float:
    """The factor of the scores whose softmax gives the labels the highest likelihood.

    Every class counts as if it had been seen once more in every place (Laplace's rule of succession): some
    rows without an error do not mean that there is none.
    """
    rows, classes = scores.shape
    smoothing = classes / (rows + classes)
    losses = [
        float(
            torch.nn.functional.cross_entropy(
                scores.double() * factor, labels, reduction="none", label_smoothing=smoothing
            )
            @ weights.double()
        )
        for factor in INVERSE_TEMPERATURES
    ]
    return INVERSE_TEMPERATURES[int(np.argmin(losses))]
