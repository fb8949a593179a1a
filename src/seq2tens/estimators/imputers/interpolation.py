"""Simple imputers: the mean, the last value, linear interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int

from seq2tens._checks import choice
from seq2tens.data import Sequences, Steps, last_before, times_of, values_at
from seq2tens.estimators.imputers.formats import Values
from seq2tens.estimators.imputers.point import PointImputer


@dataclass(kw_only=True, eq=False, repr=False)
class RuleImputer(PointImputer):
    """Base class of imputers whose rule fills an entry from other entries only.

    Hence the rule can be evaluated on every observed entry of the training data, as if it alone were missing.
    Errors in long gaps are larger, so there the intervals are too narrow.
    """

    def _learn(self, X: Sequences) -> None:
        """Learn nothing: the channel means are known already."""

    def _errors(self, X: Sequences) -> Values:
        return X.values - self._fill(X)


@dataclass(kw_only=True, eq=False, repr=False)
class MeanImputer(RuleImputer):
    """Fills with the mean of the channel.

    Args:
        over: `"data"`: mean over the training data; `"sequence"`: mean over the steps of the same sequence,
            or as for `"data"` if it has no value of the channel.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import MeanImputer
        >>> MeanImputer().fit_transform(np.array([[[1.0, np.nan, 3.0]]]))
        array([[[1., 2., 3.]]])
    """

    over: Literal["data", "sequence"] = "data"

    def _learn(self, X: Sequences) -> None:
        choice("over", self.over, ("data", "sequence"))

    def _fill(self, X: Sequences) -> Values:
        means = self.scaler_.mean_
        if self.over == "data":
            return np.broadcast_to(means, X.values.shape)
        observed = ~np.isnan(X.values)
        known = np.where(observed, X.values, 0.0)
        sums, counts = (np.repeat(_sums(table, X), X.lengths, axis=0) for table in (known, observed))
        others = counts - observed
        return np.where(others > 0, (sums - known) / np.maximum(others, 1), means)


@dataclass(kw_only=True, eq=False, repr=False)
class ForwardImputer(RuleImputer):
    """Fills with the last value of the channel before the gap, or with its training mean if there is none.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import ForwardImputer
        >>> ForwardImputer().fit_transform(np.array([[[np.nan, 3.0, np.nan, 5.0]]]))
        array([[[4., 3., 3., 5.]]])
    """

    def _fill(self, X: Sequences) -> Values:
        return values_at(X.values, last_before(~np.isnan(X.values), X.starts), self.scaler_.mean_)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearImputer(RuleImputer):
    """Linear interpolation between the values before and after the gap, in time if the sequences have times,
    otherwise in steps.

    Gaps before the first value are filled with the first value, gaps after the last with the last; a sequence
    without a value of the channel is filled with its training mean.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import LinearImputer
        >>> LinearImputer().fit_transform(np.array([[[np.nan, 3.0, np.nan, 5.0]]]))
        array([[[3., 3., 4., 5.]]])
    """

    def _fill(self, X: Sequences) -> Values:
        observed = ~np.isnan(X.values)
        before, after = last_before(observed, X.starts), first_after(observed, X.offsets)
        values, mean = X.values.astype(np.float64), self.scaler_.mean_
        right = values_at(values, after, values_at(values, before, mean))
        left = values_at(values, before, right)
        return left + _elapsed_share(X, before, after) * (right - left)


def first_after(observed: Bool[np.ndarray, "steps channels"], offsets: Int[np.ndarray, " bounds"]) -> Steps:
    """Return the first step with a value after each step of the same sequence, -1 if there is none."""
    starts = (len(observed) - np.repeat(offsets[1:], np.diff(offsets)))[::-1]
    backwards = last_before(observed[::-1], starts)[::-1]
    return np.where(backwards >= 0, len(observed) - 1 - backwards, -1)


def _elapsed_share(X: Sequences, before: Steps, after: Steps) -> Values:
    """Return the elapsed fraction of each gap; 0.5 for gaps of zero duration."""
    times = times_of(X)
    start, whole = times[before.clip(min=0)], times[after.clip(min=0)] - times[before.clip(min=0)]
    return np.where(whole > 0, (times[:, None] - start) / np.where(whole > 0, whole, 1.0), 0.5)


def _sums(table: np.ndarray, X: Sequences) -> Any:
    return np.add.reduceat(table, X.offsets[:-1], axis=0, dtype=np.float64)
