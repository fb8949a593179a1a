"""Adapters of this library's estimators for sktime: `pip install seq2tens[sktime]`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from jaxtyping import Float, Shaped
from sklearn.base import clone
from typing_extensions import Self

from seq2tens.data import Sequences
from seq2tens.estimators.classifiers import DeepLS2TClassifier, FCNClassifier
from seq2tens.estimators.features import LS2TFeatures, Seq2TensFeatures
from seq2tens.estimators.imputers import ForwardImputer, LinearImputer
from seq2tens.estimators.random import RandomLS2TClassifier, RandomLS2TRegressor

try:
    from sktime.classification.base import BaseClassifier
    from sktime.regression.base import BaseRegressor
    from sktime.transformations.base import BaseTransformer
except ImportError as error:
    raise ImportError("seq2tens.estimators.sktime needs sktime: pip install 'seq2tens[sktime]'") from error

Frames = list[pd.DataFrame]
AUTHORS = {"authors": ["seq2tens developers"], "maintainers": ["seq2tens developers"]}
TAGS: dict[str, Any] = {
    "X_inner_mtype": "df-list",
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:missing_values": True,
    "capability:categorical_in_X": False,
    **AUTHORS,
}
TRANSFORMER_TAGS: dict[str, Any] = {
    **TAGS,
    "scitype:transform-input": "Series",
    "scitype:instancewise": False,
    "scitype:transform-labels": "None",
    "y_inner_mtype": "None",
    "fit_is_empty": False,
}


class _Adapted:
    """Base class of the adapters."""

    def __init__(self, estimator: Any, times: bool = False) -> None:
        self.estimator = estimator
        self.times = times
        super().__init__()

    def _fit(self, X: Frames, y: Any = None) -> Self:
        self.estimator_ = clone(self.estimator).fit(self._sequences(X), y)
        return self

    def _predict(self, X: Frames) -> Shaped[np.ndarray, " rows"]:
        return self.estimator_.predict(self._sequences(X))

    def _sequences(self, X: Frames) -> Sequences:
        values = [frame.to_numpy(dtype=np.float64) for frame in X]
        return Sequences.from_list(values, [_clock(frame.index) for frame in X] if self.times else None)


class SktimeClassifier(_Adapted, BaseClassifier):
    """A classifier of this library as a classifier of sktime.

    Args:
        estimator: the classifier; a copy of it is fitted and stored as `estimator_`.
        times: whether the index, integers or dates, holds the times of the steps.

    Examples:
        >>> from seq2tens.estimators import FCNLS2TClassifier
        >>> from seq2tens.estimators.sktime import SktimeClassifier
        >>> classifier = SktimeClassifier(FCNLS2TClassifier(random_state=0))
    """

    _tags = {**TAGS, "capability:predict_proba": True}  # noqa: RUF012 - sktime reads it from the class

    def _predict_proba(self, X: Frames) -> Float[np.ndarray, "rows classes"]:
        return self.estimator_.predict_proba(self._sequences(X))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return _test_params(DeepLS2TClassifier, FCNClassifier, RandomLS2TClassifier)


class SktimeRegressor(_Adapted, BaseRegressor):
    """A regressor of this library as a regressor of sktime.

    Args:
        estimator: the regressor; a copy of it is fitted and stored as `estimator_`.
        times: whether the index, integers or dates, holds the times of the steps.

    Examples:
        >>> from seq2tens.estimators import RandomLS2TRegressor
        >>> from seq2tens.estimators.sktime import SktimeRegressor
        >>> regressor = SktimeRegressor(RandomLS2TRegressor(random_state=0))
    """

    _tags = TAGS

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return [*_test_params(RandomLS2TRegressor), {"estimator": RandomLS2TRegressor(n_blocks=1, order=1)}]


class SktimeFeatures(_Adapted, BaseTransformer):
    """A feature map of this library as a transformer of sktime: a row of numbers for each series.

    Args:
        estimator: the feature map; a copy of it is fitted and stored as `estimator_`.
        times: whether the index, integers or dates, holds the times of the steps.

    Examples:
        >>> from seq2tens.estimators import RandomLS2TFeatures
        >>> from seq2tens.estimators.sktime import SktimeFeatures
        >>> features = SktimeFeatures(RandomLS2TFeatures(n_blocks=4, random_state=0))
    """

    _tags = {  # noqa: RUF012 - sktime reads it from the class
        **TRANSFORMER_TAGS,
        "scitype:transform-output": "Primitives",
        "capability:unequal_length:removes": True,
        "capability:missing_values:removes": True,
    }

    def _transform(self, X: Frames, y: Any = None) -> pd.DataFrame:
        table = self.estimator_.transform(self._sequences(X))
        return pd.DataFrame(np.asarray(table), columns=self.estimator_.get_feature_names_out())

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return _test_params(LS2TFeatures, Seq2TensFeatures)


class SktimeImputer(_Adapted, BaseTransformer):
    """An imputer of this library as a transformer of sktime, which returns the series without gaps.

    Args:
        estimator: the imputer; a copy of it is fitted and stored as `estimator_`.
        times: whether the index, integers or dates, holds the times of the steps.

    Examples:
        >>> from seq2tens.estimators import LinearImputer
        >>> from seq2tens.estimators.sktime import SktimeImputer
        >>> imputer = SktimeImputer(LinearImputer())
    """

    _tags = {  # noqa: RUF012 - sktime reads it from the class
        **TRANSFORMER_TAGS,
        "scitype:transform-output": "Series",
        "capability:missing_values:removes": True,
    }

    def _transform(self, X: Frames, y: Any = None) -> Frames:
        filled = self.estimator_.transform(self._sequences(X))
        return [
            pd.DataFrame(values, index=frame.index, columns=frame.columns)
            for values, frame in zip(filled, X, strict=True)
        ]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return _test_params(ForwardImputer, LinearImputer)


def _test_params(*kinds: Any) -> list[dict[str, Any]]:
    return [{"estimator": kind(**kind._get_test_params())} for kind in kinds]


def _clock(index: pd.Index) -> Float[np.ndarray, " steps"]:
    """Convert the index to numbers; dates become seconds since the first."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        index = (index - index[0]).total_seconds()
    return index.to_numpy(dtype=np.float64)
