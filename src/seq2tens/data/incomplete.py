"""Arrays with missing entries, and the true values of those that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from seq2tens._checks import ArgumentError, require
from seq2tens.data import _packed
from seq2tens.data.sequences import Rows

AXES = "(n, time, channels)"


@dataclass(frozen=True, eq=False)
class Incomplete:
    """Sequences of equal length in which some entries are hidden or were never measured.

    Attributes:
        truth: all known values, in float32; NaN where unknown. For scoring, never for a model.
        observed: mask of the entries that a model may see.
        labels: one per sequence, or None.
        ids: names of the sequences, or None.
        channels: names of the channels, or None.
        image: `(height, width, colours)` if the channels of a step are the pixels of an image, in this order.
    """

    truth: Float[np.ndarray, "n time channels"]
    observed: Bool[np.ndarray, "n time channels"]
    labels: Shaped[np.ndarray, " n"] | None = None
    ids: Shaped[np.ndarray, " n"] | None = None
    channels: tuple[str, ...] | None = None
    image: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        truth = _packed.check_cube("truth", self.truth, AXES).astype(np.float32, copy=False)
        object.__setattr__(self, "truth", truth)
        self._check_observed()
        _check_finite("truth", truth)
        self._check_names()

    @classmethod
    def from_array(cls, X: Any, truth: Any = None, **described: Any) -> Incomplete:
        """Create from an array with NaN for missing entries.

        Args:
            X: array of shape (n, time, channels).
            truth: the same with more known entries, such as those that `held_out` has hidden in `X`
                (default: `X`).
            described: the attributes `labels`, `ids`, `channels` and `image`.
        """
        X = _packed.check_cube("X", X, AXES)
        return cls(X if truth is None else truth, ~np.isnan(X), **described)

    def __len__(self) -> int:
        return len(self.truth)

    def __getitem__(self, rows: Rows) -> Incomplete:
        index = _packed.row_numbers(rows, len(self))
        labels, ids = (None if array is None else array[index] for array in (self.labels, self.ids))
        return Incomplete(self.truth[index], self.observed[index], labels, ids, self.channels, self.image)

    @property
    def values(self) -> Float[np.ndarray, "n time channels"]:
        """The observed values, 0 in all other entries."""
        return np.where(self.observed, self.truth, np.float32(0))

    @property
    def with_nan(self) -> Float[np.ndarray, "n time channels"]:
        """The observed values, NaN in all other entries."""
        return np.where(self.observed, self.truth, np.float32(np.nan))

    @property
    def hidden(self) -> Bool[np.ndarray, "n time channels"]:
        """The entries to score an imputation on: known, but not observed."""
        return ~self.observed & ~np.isnan(self.truth)

    def _check_observed(self) -> None:
        observed = np.asarray(self.observed)
        if observed.dtype != bool:
            raise TypeError(f"`observed` must be boolean, got {observed.dtype}")
        require(
            observed.shape == self.truth.shape,
            f"`observed` must have the shape of `truth` {self.truth.shape}, got {observed.shape}",
        )
        unknown = np.argwhere(observed & np.isnan(self.truth))
        require(
            len(unknown) == 0,
            f"`truth` must be known where observed, got NaN at {unknown[:1].ravel().tolist()}",
        )
        object.__setattr__(self, "observed", observed)

    def _check_names(self) -> None:
        n, _, channels = self.truth.shape
        _packed.check_columns(self, n, channels, "truth")
        require(
            self.image is None or int(np.prod(self.image)) == channels,
            f"`image` must have the product {channels}, the channels of `truth`, got {self.image}",
        )


def held_out(
    X: Any, fraction: float, generator: np.random.Generator
) -> tuple[Float[np.ndarray, "*shape"], Bool[np.ndarray, "*shape"]]:
    """Hide observed entries at random, each with the same probability.

    Args:
        X: array of any shape, NaN for missing entries; it is not changed.
        fraction: fraction of the observed entries to hide, in 0..1. Their number is rounded, so that it does
            not depend on the generator.
        generator: random generator that selects them.

    Returns:
        The array with NaN in the hidden entries as well, and the mask of the hidden entries.
    """
    if not isinstance(generator, np.random.Generator):
        raise TypeError(f"`generator` must be a numpy.random.Generator, got {type(generator).__name__}")
    require(0 <= fraction <= 1, f"`fraction` must lie in 0..1, got {fraction}")
    X = _packed.as_floating("X", X)
    observed = np.flatnonzero(~np.isnan(X))
    chosen = generator.choice(observed, size=round(fraction * len(observed)), replace=False, shuffle=False)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden.flat[chosen] = True
    return np.where(hidden, X.dtype.type(np.nan), X), hidden


def _check_finite(name: str, X: np.ndarray) -> None:
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        n, step, channel = infinite[0].tolist()
        raise ArgumentError(
            f"`{name}` must be finite or NaN, got {X[n, step, channel]} at sequence {n}, step {step}, "
            f"channel {channel}"
        )
