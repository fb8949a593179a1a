"""Base class of the imputers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2tens._checks import positive_int, require
from seq2tens._storage import Tensors
from seq2tens.data import Preparation, Sequences, held_out
from seq2tens.estimators.features import SequenceTransformer
from seq2tens.estimators.imputers.formats import Collection, Values, read
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, seed_of

Draws = Float[np.ndarray, "draws steps channels"]


class Imputer(SequenceTransformer):
    """Base class of imputers: fills missing values with a single value, random draws, or an interval.

    Collections are arrays or tensors `(n, channels, time)`, lists of arrays `(channels, time)`, lists of
    frames of pandas or polars (rows are steps), frames indexed by (instance, time) or with a column `id`,
    `data.Labelled`, `data.Sequences` and dictionaries of PyPOTS (`X` of shape `(n, time, channels)`); missing
    values are NaN. The result has the type of the input, frames keep their rows, index and columns, and
    observed values do not change, not even in the last bit. Missing strings in a frame stay missing.

    A channel without any value in training is filled with 0 unless stated otherwise. Attributes after `fit`:
    `scaler_`, with the mean and scale of each channel, and `n_channels_`.

    Subclasses implement `_learn(X)` and `_fill(X)`, `_intervals(X, coverage)` and `_draws(X, n, seed)`, where
    `X` is a `Sequences`; their results at observed entries are ignored.
    """

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the collection with every missing entry filled; `y` is ignored."""
        collection = self._fitted_to(X)
        return collection.with_values(self._completed(collection.sequences))

    def sample(self, X: Any, n: int = 1, random_state: RandomState = None) -> Any:
        """Return completed copies with missing entries drawn at random.

        Args:
            X: a collection.
            n: number of copies.
            random_state: an integer, a numpy `RandomState` or None. The draws for a sequence depend on it and
                on the sequence's position in the collection, not on the other sequences.

        Returns:
            A list of collections; for an array, one array with an additional first axis.
        """
        n = plain.python(n)
        positive_int("n", n)
        collection = self._fitted_to(X)
        draws = self._draws(collection.sequences, n, seed_of(random_state))
        copies = [collection.with_values(_missing_only(collection.sequences, values)) for values in draws]
        return collection.stacked(copies)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """Return lower and upper ends of intervals that each contain a missing entry with this probability.

        Both are collections like `X`; at observed entries they equal the value itself.
        """
        require(0 < coverage < 1, f"`coverage` must lie in (0, 1), got {coverage}")
        collection = self._fitted_to(X)
        low, high = self._intervals(collection.sequences, coverage)
        return (
            collection.with_values(_missing_only(collection.sequences, low)),
            collection.with_values(_missing_only(collection.sequences, high)),
        )

    def score(
        self, X: Any, truth: Any = None, *, fraction: float = 0.1, random_state: RandomState = 0
    ) -> float:
        """Return minus the mean squared error of filled entries, relative to each channel's training scale.

        Args:
            X: a collection.
            truth: the same collection with more values; the entries missing in `X` are compared. Without it,
                some of the observed entries of `X` are hidden at random, filled and compared.
            fraction: fraction of the observed entries to hide in that case.
            random_state: seed that selects them.
        """
        sequences = self._fitted_to(X).sequences
        if truth is None:
            generator = np.random.default_rng(seed_of(random_state))
            values, compared = held_out(sequences.values, fraction, generator)
            known = sequences.values
            sequences = sequences.with_values(values)
        else:
            known = _known(truth, sequences)
            compared = np.isnan(sequences.values) & ~np.isnan(known)
        require(bool(compared.any()), "`score` needs at least one entry to compare, got none")
        errors = ((self._completed(sequences) - known) / self.scaler_.scale_)[compared]
        return -float(np.mean(np.square(errors), dtype=np.float64))

    def _fit(self, X: Sequences) -> None:
        self.preparation_ = Preparation("channel").fit(_values_only(X))
        self._learn(X)

    def _learn(self, X: Sequences) -> None:
        """Learn what `_fill` needs; `preparation_` is fitted already."""
        raise NotImplementedError

    def _fill(self, X: Sequences) -> Values:
        """Return a value for each entry."""
        raise NotImplementedError

    def _intervals(self, X: Sequences, coverage: float) -> tuple[Values, Values]:
        raise NotImplementedError

    def _draws(self, X: Sequences, n: int, seed: int) -> Draws:
        raise NotImplementedError

    def _preprocess_collection(self, X: Any, store_metadata: bool = True) -> Sequences:
        return super()._preprocess_collection(
            read(X).sequences if isinstance(X, Mapping) else X, store_metadata
        )

    def _check_shape(self, X: Sequences) -> None:
        """Check values only: times and static features need not match those of training."""
        self.preparation_.check(_values_only(X), "X")

    def _fitted_to(self, X: Any) -> Collection:
        self._check_is_fitted()
        collection = read(X, self.encoding_)
        self._check_columns(collection.labelled)
        self._check_shape(collection.sequences)
        return collection

    def _completed(self, X: Sequences) -> Values:
        return X.values if not np.isnan(X.values).any() else _missing_only(X, self._fill(X))

    def _tensors(self) -> Tensors:
        return {}


def _values_only(X: Sequences) -> Sequences:
    return Sequences(X.values, X.offsets)


def _missing_only(X: Sequences, filled: Values) -> Values:
    """Return the observed values, with missing entries filled, in the type of the observed values."""
    return np.where(np.isnan(X.values), filled.astype(X.values.dtype), X.values)


def _known(truth: Any, X: Sequences) -> Values:
    known = read(truth).sequences
    require(
        np.array_equal(known.lengths, X.lengths) and known.n_channels == X.n_channels,
        f"`truth` must have the sequences, steps and channels of `X`, got {known!r} for {X!r}",
    )
    return known.values
