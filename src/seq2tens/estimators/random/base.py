"""Base class of the linear models on random features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from aeon.utils.validation import check_n_jobs
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Sequences
from seq2tens.estimators.inputs import as_sequences
from seq2tens.estimators.random.contributions import Contributions, contributions
from seq2tens.estimators.random.explanation import Explanation, describe_features
from seq2tens.estimators.random.features import RandomLS2TFeatures
from seq2tens.estimators.random.heads import Head
from seq2tens.estimators.random.learning import LearnsOn
from seq2tens.estimators.random.ridge import (
    PENALTIES,
    Ridge,
    batches,
    check_penalties,
    fit_ridge,
    standardize,
    torch_threads,
)
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, seed_of

# With at most this many rows, starting threads costs more than it saves.
SINGLE_THREAD_ROWS = 1024


class HeldOut(NamedTuple):
    """Predictions for training sequences by models that have not seen them, and their row numbers."""

    decisions: Float[Tensor, "sample targets"]
    rows: Int[np.ndarray, " sample"]


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2T(LearnsOn):
    """Base class of the classifier and the regressor.

    Args:
        n_blocks: number of blocks of random features; each has 160 features and 64 more per level above the
            first.
        order: highest level.
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None).
        penalties: candidate ridge penalties, per feature; leave-one-out selects one. With more than 2048
            sequences it uses a random sample of that size.
        n_jobs: number of threads; -1 means all. With 1, features are still computed by as many threads as
            torch uses, by default one per core, and only the linear algebra by a single one.
        random_state: an integer, a numpy `RandomState` or None.
        head: None for ridge regression, or a scikit-learn classifier or regressor for the standardised
            features; such a model cannot be saved, explained or updated.

    Attributes after `fit`: `features_`, `ridge_` (coefficients, intercept, penalty), `scaler_` and
    `n_channels_`.
    """

    n_blocks: int = 40
    order: int = 3
    scaling: Literal["channel", "sequence"] | None = "channel"
    penalties: Sequence[float] = PENALTIES
    n_jobs: int = 1
    random_state: RandomState = None
    head: Any = None

    _test_params: ClassVar[dict[str, Any]] = {"n_blocks": 2, "random_state": 0}

    def explain(self, X: Any = None, top: int = 10) -> list[Explanation]:
        """Describe the features with the largest coefficients, largest first.

        With sequences, also list the steps of each that a feature uses: m steps for level m.
        """
        self._check_ridge()
        sequences = None if X is None else as_sequences(X, self.encoding_)  # type: ignore[attr-defined]
        names = self.variable_names_ or ()  # type: ignore[attr-defined]
        return describe_features(self.features_, self.ridge_.coefficients, sequences, top, names)

    @torch.no_grad()
    def contributions(self, X: Any) -> Contributions:
        """Split the scores of each sequence into contributions of the channels, which add up to them."""
        table, names = self.standardized_features(X), self.variable_names_ or ()  # type: ignore[attr-defined]
        return self._in_units(contributions(self.features_, self.ridge_, table, self._target_names(), names))

    @torch.no_grad()
    def standardized_features(self, X: Any) -> Float[Tensor, "rows features"]:
        """Return the features that scores are linear in: of mean 0 and variance 1 on the training data."""
        sequences = self._as_in_fit(X)  # type: ignore[attr-defined]
        self._check_ridge()
        return standardize(self._table(sequences), self.ridge_.mean, self.ridge_.scale)

    def _target_names(self) -> tuple[Any, ...]:
        """Return the names of the targets, one for each column of the scores."""
        raise NotImplementedError

    def _in_units(self, parts: Contributions) -> Contributions:
        """Convert contributions to the units of the predictions."""
        return parts

    def _new_features(self, seed: int) -> RandomLS2TFeatures:
        return RandomLS2TFeatures(
            n_blocks=self.n_blocks,
            order=self.order,
            scaling=self.scaling,
            n_jobs=self.n_jobs,
            random_state=seed,
        )

    def _learn(self, X: Sequences, targets: Tensor, weights: Tensor, strata: np.ndarray) -> HeldOut:
        penalties, seed = check_penalties(self.penalties), seed_of(self.random_state)
        self.features_ = self._new_features(seed).fit(X)
        self.preparation_ = self.features_.preparation_
        with torch_threads(self._threads(len(X))), torch.no_grad():
            rng = np.random.default_rng(seed)
            self.ridge_ = fit_ridge(
                lambda rows: self._table(X[rows]), targets, weights, rng, penalties, strata
            )
        assert self.ridge_.held_out is not None
        assert self.ridge_.sample is not None
        return HeldOut(self.ridge_.held_out, self.ridge_.sample)

    def _learn_head(self, X: Sequences, targets: np.ndarray, weights: Tensor) -> None:
        self.features_ = self._new_features(seed_of(self.random_state)).fit(X)
        self.preparation_ = self.features_.preparation_
        self.head_ = Head(self.head, self._table(X), targets, weights)

    def _check_ridge(self) -> None:
        self._check_is_fitted()  # type: ignore[attr-defined]
        check.require(
            hasattr(self, "ridge_"),
            f"`head` must be None (ridge regression) for this method, got {self.head!r}",
        )

    def _threads(self, n: int) -> int:
        """Return the number of threads for matrices with `n` rows."""
        return check_n_jobs(self.n_jobs) if n > SINGLE_THREAD_ROWS else 1

    def _table(self, X: Sequences) -> Float[Tensor, "rows features"]:
        return torch.from_numpy(self.features_._transform(X))

    @torch.no_grad()
    def _decide(self, X: Sequences) -> Float[Tensor, "rows targets"]:
        with torch_threads(self._threads(len(X))):
            return torch.cat([self.ridge_(self._table(X[rows])) for rows in batches(len(X))])

    def _tensors(self) -> Tensors:
        self._check_ridge()
        return plain.join(
            features=self.features_._tensors(),
            ridge=self.ridge_.tensors(),
            conformal={"scores": self.scores_},
            sums=self._sum_tensors(),
        )

    def _restore_model(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        self.features_ = self._new_features(facts["seed"])
        self.features_._restore(plain.split(tensors, "features"), facts)
        self.features_.is_fitted = True
        self.preparation_ = self.features_.preparation_
        self.ridge_ = Ridge.from_tensors(plain.split(tensors, "ridge"))
        # older models have no scores; without any, sets and intervals are unbounded at every coverage
        self.scores_ = plain.split(tensors, "conformal").get("scores", torch.empty(0, 1, dtype=torch.float64))
        self._restore_sums(plain.split(tensors, "sums"))
