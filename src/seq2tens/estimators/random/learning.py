"""Incremental learning: add, remove and merge sequences after the first fit, exactly.

Whatever depends on the data other than through sums is frozen after the first sequences: the scaling of the
channels, thresholds and scales of the features, and the penalty.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from typing_extensions import Self

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Sequences
from seq2tens.estimators.random import ridge
from seq2tens.estimators.random.features import RandomLS2TFeatures
from seq2tens.estimators.random.moments import Moments, NormalEquations
from seq2tens.estimators.random.parts import BACKENDS, Part, as_parts, load
from seq2tens.estimators.random.ridge import Ridge
from seq2tens.estimators.seeds import seed_of

Labels = Shaped[np.ndarray, " rows"]


class LearnsOn:
    """Mixin with `partial_fit`, `forget` and `merge` for linear models on random features.

    A subclass checks labels (`_check_labels`), makes room for new ones (`_register_targets`), encodes them
    as columns (`_encode`), and calibrates probabilities or intervals with held-out predictions
    (`_calibrate_uncertainty`).
    """

    features_: RandomLS2TFeatures
    ridge_: Ridge
    moments_: Moments
    equations_: NormalEquations
    penalties: Sequence[float]
    random_state: Any
    n_jobs: int
    is_fitted: bool

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Determine scales and thresholds from these sequences and, with `y`, the penalty; then freeze them.

        The sequences themselves are not learned yet. A previous fit is discarded.
        """
        self.reset()  # type: ignore[attr-defined]
        sequences = self._learn_collection(X).sequences  # type: ignore[attr-defined]
        try:
            labels = None if y is None else self._check_labels(y, len(sequences))
            self._freeze(sequences)
            if labels is not None:
                self._choose_penalty(sequences, labels)
        except BaseException:
            self.reset()  # type: ignore[attr-defined]  # or the next call would go on with these scales
            raise
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from further sequences, as if they had been there from the beginning.

        Without a previous `calibrate`, the first call calibrates and should have a few hundred sequences.
        """
        if not hasattr(self, "scales_"):
            self._check_fresh()
            self.calibrate(X, y)
        sequences, labels = self._check_batch(X, y)
        self._begin_sums(sequences, labels)
        self._count(self.moments_.add, sequences, labels)
        return self._solve()

    def forget(self, X: Any, y: Any) -> Self:
        """Remove sequences that were learned: the model becomes as if they had never been there.

        Only the frozen calibration may still depend on them; if that matters, `calibrate` with sequences that
        are never removed.
        """
        self._check_sums(self)
        sequences, labels = self._check_batch(X, y)
        self.moments_.check_removable(len(sequences))
        self._count(self.moments_.subtract, sequences, labels)
        return self._solve()

    def merge(self, other: Self) -> Self:
        """Add what another model with the same calibration has learned; `other` is not changed."""
        check.require(
            type(other) is type(self), f"`other` must be a {type(self).__name__}, got {type(other).__name__}"
        )
        self._check_sums(self)
        self._check_sums(other)
        check.require(
            self._same_calibration(other),
            "`other` must start from a copy of this model after `calibrate`, got one with other scales",
        )
        self._merge_sums(self._sums_of(other), getattr(other, "classes_", None))
        return self._solve()

    def fit_parts(
        self, parts: str | Path | Iterable[Part], on: Literal["here", "joblib", "ray"] = "here"
    ) -> Self:
        """Fit to data that come in parts, with one part in memory at a time; a previous fit is discarded.

        The first part is used to calibrate, and should have a few thousand sequences of all kinds. The sums
        of the parts are merged in order, so that the result depends on `on` only by rounding.

        Args:
            parts: a folder of `.npz` or `.parquet` files, or an iterable of parts: such files, pairs
                `(X, y)`, or functions that return such pairs.
            on: sum parts in this process (`"here"`), in workers of the backend of `joblib.parallel_config`
                (`"joblib"`), or as tasks of the Ray cluster that `ray.init` connected to (`"ray"`), where
                only the parts of a lost machine are computed again.
        """
        check.require(on == "here" or on in BACKENDS, f"`on` must be 'here', 'joblib' or 'ray', got {on!r}")
        stream = as_parts(parts)
        first = next(stream, None)
        if first is None:
            raise check.ArgumentError("`parts` must hold at least one part, got none")
        sequences, labels = load(first)
        self.calibrate(sequences, labels)
        sample = self._first_sample(sequences, labels)
        del sequences, labels
        self._sum_parts(itertools.chain([first], stream), on)
        self._solve()
        self._recalibrate_uncertainty(*sample)
        return self

    def _check_labels(self, y: Any, n: int) -> Labels:
        raise NotImplementedError

    def _register_targets(self, labels: Labels) -> None:
        raise NotImplementedError

    def _encode(self, labels: Labels) -> Float[Tensor, "rows targets"]:
        raise NotImplementedError

    def _strata(self, labels: Labels) -> np.ndarray:
        """Return the stratum of each sequence; each stratum is divided into folds separately."""
        return np.zeros(len(labels), dtype=int)

    def _calibrate_uncertainty(self, held_out: Float[Tensor, "rows targets"], labels: Labels) -> None:
        raise NotImplementedError

    def _linear_map(self, solution: Float[Tensor, "1+features targets"]) -> Ridge:
        mean, scale = self.scales_
        return Ridge(mean, scale, solution[1:].float(), solution[0].float(), self.penalty_)

    def _new_features(self, seed: int) -> RandomLS2TFeatures:
        raise NotImplementedError

    def _table(self, X: Sequences) -> Float[Tensor, "rows features"]:
        raise NotImplementedError

    def _threads(self, n: int) -> int:
        raise NotImplementedError

    def _check_batch(self, X: Any, y: Any) -> tuple[Sequences, Labels]:
        """Check further sequences and labels, and convert them."""
        sequences = self._preprocess_collection(X, store_metadata=False)  # type: ignore[attr-defined]
        self._check_shape(sequences)  # type: ignore[attr-defined]
        return sequences, self._check_labels(y, len(sequences))

    def _check_fresh(self) -> None:
        check.require(
            not self.is_fitted,
            "`partial_fit` must follow `calibrate` or another `partial_fit`, "
            "got a model of `fit`, which keeps no sums",
        )

    @torch.no_grad()
    def _freeze(self, X: Sequences) -> None:
        seed = seed_of(self.random_state)
        self.features_ = self._new_features(seed).fit(X)
        self.preparation_ = self.features_.preparation_
        sample = self._sample(X)
        with ridge.torch_threads(self._threads(len(sample))):
            self.scales_ = ridge.statistics(self._table(X[sample]), torch.ones(len(sample)))

    def _sample(self, X: Sequences) -> np.ndarray:
        return np.unique(np.linspace(0, len(X) - 1, ridge.SAMPLE).astype(int))

    @torch.no_grad()
    def _choose_penalty(self, X: Sequences, labels: Labels) -> None:
        self._register_targets(labels)
        sample = self._sample(X)
        with ridge.torch_threads(self._threads(len(sample))):
            self.penalty_, _, held_out = ridge.choose_penalty(
                ridge.standardize(self._table(X[sample]), *self.scales_),
                self._encode(labels[sample]),
                torch.ones(len(sample)),
                ridge.neighbors(self._strata(labels[sample])),
                ridge.check_penalties(self.penalties),
            )
        self._calibrate_uncertainty(held_out, labels[sample])

    def _begin_sums(self, X: Sequences, labels: Labels) -> None:
        if not hasattr(self, "penalty_"):
            self._choose_penalty(X, labels)
        self._register_targets(labels)
        if not hasattr(self, "moments_"):
            self.moments_ = Moments.zeros(len(self.scales_[0]), self._encode(labels[:1]).shape[1])

    def _count(self, count: Callable[..., None], X: Sequences, labels: Labels) -> None:
        targets = self._encode(labels)  # encode all before the first is added: one may be invalid
        with ridge.torch_threads(self._threads(len(X))), torch.no_grad():
            for table, rows in self._rows(X):
                count(table, targets[rows], torch.ones(len(rows)))

    def _rows(self, X: Sequences) -> Iterator[tuple[Float[Tensor, "rows features"], np.ndarray]]:
        for rows in ridge.batches(len(X)):
            yield ridge.standardize(self._table(X[rows]), *self.scales_).double(), rows

    def _sum_parts(self, parts: Iterator[Part], on: str) -> None:
        if on == "here":
            for part in parts:
                sequences, labels = self._check_batch(*load(part))
                self._begin_sums(sequences, labels)
                self._count(self.moments_.add, sequences, labels)
            return
        template = copy.copy(self)  # for the workers, without sums
        for sums, classes in BACKENDS[on](template, parts):
            if hasattr(self, "moments_"):
                self._merge_sums(sums, classes)
            else:
                self._begin_with(sums, classes)

    def _first_sample(self, X: Any, y: Any) -> tuple[Sequences, Labels]:
        sequences, labels = self._check_batch(X, y)
        rows = self._sample(sequences)
        return sequences[rows], labels[rows]

    @torch.no_grad()
    def _recalibrate_uncertainty(self, X: Sequences, labels: Labels) -> None:
        """Calibrate again with the first sequences, predicted from all the data but their fold."""
        with ridge.torch_threads(self._threads(len(self.moments_.second))):
            table = ridge.standardize(self._table(X), *self.scales_).double()
            folds = ridge.neighbors(self._strata(labels))
            held_out = self.equations_.held_out(self.moments_, table, self._encode(labels).double(), folds)
        self._calibrate_uncertainty(held_out.float(), labels)

    def _begin_with(self, sums: Moments, classes: np.ndarray | None) -> None:
        if classes is not None:
            self._register_targets(classes)
        self.moments_ = sums

    def _merge_sums(self, other: Moments, classes: np.ndarray | None) -> None:
        """Add sums whose targets are these classes."""
        self.moments_.merge(other)

    @torch.no_grad()
    def _solve(self) -> Self:
        if not hasattr(self, "equations_"):
            self.equations_ = NormalEquations(self.penalty_ * len(self.scales_[0]))
        with ridge.torch_threads(self._threads(len(self.moments_.second))):
            self.ridge_ = self._linear_map(self.equations_.solve(self.moments_))
        self.is_fitted = True
        return self

    @staticmethod
    def _check_sums(model: LearnsOn) -> None:
        check.require(
            hasattr(model, "moments_"),
            f"a {type(model).__name__} must be fitted by `partial_fit` or `fit_parts` for this, "
            "got one without sums",
        )

    def _sums_of(self, other: Self) -> Moments:
        """Return the sums of another model, of targets encoded as those of this one."""
        return other.moments_

    def _same_calibration(self, other: LearnsOn) -> bool:
        tensors, others = ([*model.scales_, *model.features_._tensors().values()] for model in (self, other))
        return len(tensors) == len(others) and all(map(torch.equal, tensors, others))

    def _sum_tensors(self) -> Tensors:
        """Return the tensors that `_restore_sums` needs; none if there are no sums."""
        if not hasattr(self, "moments_"):
            return {}
        sums = self.moments_
        return {"second": sums.second, "joint": sums.joint, "rows": torch.tensor(sums.rows)}

    def _restore_sums(self, tensors: Tensors) -> None:
        if tensors:
            self.moments_ = Moments(tensors["second"], tensors["joint"], int(tensors["rows"]))
            self.scales_, self.penalty_ = (self.ridge_.mean, self.ridge_.scale), self.ridge_.penalty
