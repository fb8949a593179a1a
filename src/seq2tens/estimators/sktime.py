"""Classifiers of this library among those of sktime: `pip install seq2tens[sktime]`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from jaxtyping import Float, Shaped
from sklearn.base import clone

from seq2tens.data import Sequences
from seq2tens.estimators.classifiers import DeepLS2TClassifier, FCNClassifier
from seq2tens.estimators.networks import NetworkClassifier

try:
    from sktime.classification.base import BaseClassifier
except ImportError as error:
    raise ImportError("SktimeClassifier needs sktime: pip install 'seq2tens[sktime]'") from error


class SktimeClassifier(BaseClassifier):
    """A classifier of this library that takes sktime's data and passes for one of sktime's.

    Args:
        estimator: the classifier; a copy of it is fitted, and is then `estimator_`.
        times: whether the index, integers or dates, tells when the steps were observed.

    Examples:
        >>> from seq2tens.estimators import FCNLS2TClassifier
        >>> from seq2tens.estimators.sktime import SktimeClassifier
        >>> classifier = SktimeClassifier(FCNLS2TClassifier(random_state=0))
    """

    _tags = {  # noqa: RUF012 - sktime reads it from the class
        "X_inner_mtype": "df-list",
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "capability:categorical_in_X": False,
        "capability:predict_proba": True,
        "authors": ["seq2tens developers"],
        "maintainers": ["seq2tens developers"],
    }

    def __init__(self, estimator: NetworkClassifier, times: bool = False) -> None:
        self.estimator = estimator
        self.times = times
        super().__init__()

    def _fit(self, X: list[pd.DataFrame], y: Shaped[np.ndarray, " rows"]) -> SktimeClassifier:
        self.estimator_ = clone(self.estimator).fit(self._sequences(X), y)
        return self

    def _predict(self, X: list[pd.DataFrame]) -> Shaped[np.ndarray, " rows"]:
        return self.estimator_.predict(self._sequences(X))

    def _predict_proba(self, X: list[pd.DataFrame]) -> Float[np.ndarray, "rows classes"]:
        return self.estimator_.predict_proba(self._sequences(X))

    def _sequences(self, X: list[pd.DataFrame]) -> Sequences:
        values = [frame.to_numpy(dtype=np.float64) for frame in X]
        return Sequences.from_list(values, [_clock(frame.index) for frame in X] if self.times else None)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        chosen = (DeepLS2TClassifier, FCNClassifier)
        return [{"estimator": kind(**kind._get_test_params())} for kind in chosen]


def _clock(index: pd.Index) -> Float[np.ndarray, " steps"]:
    """The index as numbers; of dates, the seconds since the first."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        index = (index - index[0]).total_seconds()
    return index.to_numpy(dtype=np.float64)
