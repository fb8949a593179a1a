"""Base classes of estimators and classifiers.

aeon's template methods are final, and support neither sample weights nor `Sequences`. Classifiers and
transformers therefore define their own methods, with the signatures of scikit-learn, and are registered as
virtual subclasses of aeon's base classes, so that aeon and its checks accept them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from aeon.base import BaseCollectionEstimator
from aeon.classification.base import BaseClassifier
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import cross_val_predict
from typing_extensions import Self

from seq2tens._checks import require
from seq2tens._storage import Tensors
from seq2tens.data import Encoding, Labelled, Preparation, Sequences
from seq2tens.estimators.inputs import (
    as_labels,
    as_sequences,
    metadata_of,
    read_collection,
    warn_if_transposed,
)
from seq2tens.estimators.saving import Storable, plain
from seq2tens.estimators.saving.exporting import Exportable

if TYPE_CHECKING:
    from seq2tens.estimators.streaming import ClassifierStream


# Attributes in which scikit-learn stores the output container and the metadata that the user asked for.
USER_SETTINGS = ("_sklearn_output_config", "_metadata_request")


class SequenceEstimator(BaseCollectionEstimator):
    """Base class of all estimators: takes collections of any kind, with unequal lengths or missing values."""

    preparation_: Preparation
    metadata_: dict[str, Any]

    _tags: ClassVar[dict[str, Any]] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
    }

    # Small and fast settings for the checks of aeon and sktime.
    _test_params: ClassVar[dict[str, Any]] = {}

    # aeon's version raises an error; sample weights are routed as in scikit-learn's estimators.
    get_metadata_routing = BaseEstimator.get_metadata_routing

    def __post_init__(self) -> None:
        super().__init__()

    def reset(self, keep: str | list[str] | None = None) -> Self:
        """Discard a previous fit, but keep the settings of `set_output` and `set_fit_request`."""
        names = [keep] if isinstance(keep, str) else keep or []
        return super().reset([*names, *USER_SETTINGS])

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return dict(cls._test_params)

    @property
    def _channels_known(self) -> bool:
        """Whether the number of channels is known before the data, which settles the order of the axes."""
        return False

    def _preprocess_collection(self, X: Any, store_metadata: bool = True) -> Sequences:
        """Convert the input: aeon's hook, whose own checks are not needed here."""
        return (self._learn_collection(X) if store_metadata else self._known_collection(X)).sequences

    def _learn_collection(self, X: Any) -> Labelled:
        """Read the training data and store its metadata."""
        labelled = read_collection(X)
        if not self._channels_known:
            warn_if_transposed(X)
        self.metadata_ = metadata_of(labelled)
        return labelled

    def _known_collection(self, X: Any) -> Labelled:
        """Read other data, with the categories of the training data."""
        labelled = read_collection(X, self.encoding_)
        self._check_columns(labelled)
        return labelled

    @property
    def encoding_(self) -> Encoding | None:
        """How the frames of the training data were encoded as channels; None if it had no frames."""
        state = self.metadata_.get("encoding")
        return None if state is None else Encoding.from_state(state)

    @property
    def variable_names_(self) -> tuple[str, ...] | None:
        """Names of the channels, then of the static features, in the training data; None without names."""
        channels, encoding = self.metadata_.get("columns"), self.encoding_
        return None if channels is None else (*channels, *(() if encoding is None else encoding.features))

    def _as_in_fit(self, X: Any) -> Sequences:
        """Read the collection; the estimator must be fitted, and the collection must match that of `fit`."""
        self._check_is_fitted()
        sequences = self._preprocess_collection(X, store_metadata=False)
        self._check_shape(sequences)
        return sequences

    def _check_columns(self, X: Labelled) -> None:
        """Require the channel names, time unit and static features of the training data, where known."""
        known = self.metadata_.get("columns")
        require(
            known is None or X.channels is None or list(X.channels) == known,
            f"`X` must have the columns {known} as in `fit`, got {list(X.channels or ())}",
        )
        learned, current = self.encoding_, X.encoding
        if learned is None or current is None:
            return
        require(
            current.unit == learned.unit,
            f"`X` must have times in the unit {learned.unit} as in `fit`, got {current.unit}; "
            "`Sequences.from_frame(…, like=train)` takes that of the training data",
        )
        require(
            current.features == learned.features,
            f"`X` must have the static features {learned.features} as in `fit`, got {current.features}",
        )

    def _check_shape(self, X: Sequences) -> None:
        self.preparation_.check(X, "X")

    @property
    def scaler_(self) -> Any:
        """The scaler of the values; None without scaling."""
        return self.preparation_.scaler

    @property
    def n_channels_(self) -> int:
        """Number of channels of the training data."""
        return self.preparation_.n_channels

    def _facts(self) -> dict[str, Any]:
        return {"preparation": self.preparation_.state(), "metadata": self.metadata_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        self.preparation_, self.metadata_ = Preparation.from_state(facts["preparation"]), facts["metadata"]


class PlainClassifier(ClassifierMixin, SequenceEstimator):
    """Base class of classifiers of sequences.

    A subclass implements `_fit(X, y)` and `_predict_proba(X)`, in which `X` is a `Sequences`.
    """

    _tags: ClassVar[dict[str, Any]] = BaseClassifier.get_class_tags() | SequenceEstimator._tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the classifier to labelled sequences; a previous fit is discarded."""
        self.reset()
        return self._fit_labelled(self._learn_collection(X), y)

    def predict(self, X: Any) -> Shaped[np.ndarray, " rows"]:
        """Predict the most probable class of each sequence."""
        return self._predict(self._as_in_fit(X))

    def predict_proba(self, X: Any) -> Float[np.ndarray, "rows classes"]:
        """Predict the class probabilities of each sequence, in the order of `classes_`."""
        return self._predict_proba(self._as_in_fit(X))

    def fit_predict(self, X: Any, y: Any, *, cv_size: int = 10) -> Shaped[np.ndarray, " rows"]:
        """Fit the classifier, and return cross-validated predictions for the same sequences."""
        return self._cross_validated(X, y, "predict", cv_size)

    def fit_predict_proba(self, X: Any, y: Any, *, cv_size: int = 10) -> Float[np.ndarray, "rows classes"]:
        """Fit the classifier, and return cross-validated class probabilities for the same sequences."""
        return self._cross_validated(X, y, "predict_proba", cv_size)

    def score(
        self,
        X: Any,
        y: Any,
        metric: Any = "accuracy",
        use_proba: bool = False,
        metric_params: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the accuracy of the predictions, or another metric.

        `metric` is the name of a metric of scikit-learn, or a function of true labels and predictions
        (probabilities with `use_proba`).
        """
        if sample_weight is not None:
            metric_params = {**(metric_params or {}), "sample_weight": sample_weight}
        return BaseClassifier.score(self, X, y, metric, use_proba, metric_params)

    def _fit_labelled(self, X: Labelled, y: Any, *weights: Any) -> Self:
        """Fit to the labels `y`, or to those of `X` if `y` is None."""
        labels = X.labels if y is None else y
        require(labels is not None, "`y` must be given, since `X` has no labels")
        self._fit(X.sequences, self._check_y(labels, len(X)), *weights)
        self.is_fitted = True
        return self

    def _cross_validated(
        self, X: Any, y: Any, method: Literal["predict", "predict_proba"], cv_size: int
    ) -> np.ndarray:
        self.fit(X, y)
        folds = min(cv_size, int(np.unique(np.asarray(y), return_counts=True)[1].min()))
        require(folds > 1, f"`cv_size` and the rows of each class in `y` must be at least 2, got {folds}")
        return cross_val_predict(clone(self), as_sequences(X), np.asarray(y), cv=folds, method=method)

    def _predict(self, X: Sequences) -> Shaped[np.ndarray, " rows"]:
        return self.classes_[self._predict_proba(X).argmax(axis=1)]

    def _check_y(
        self, y: Any, n_cases: int, update_classes: bool = True, allow_single_class: bool = False
    ) -> Shaped[np.ndarray, " rows"]:
        """Return the labels as an array; when scoring, a single class or an unseen one is allowed."""
        labels = as_labels(y, n_cases)
        if update_classes:
            self._set_classes(np.unique(labels))
            require(
                self.n_classes_ > 1 or allow_single_class,
                f"`y` must have at least 2 classes, got {self.classes_.tolist()}",
            )
        return labels

    def _set_classes(self, classes: Shaped[np.ndarray, " classes"]) -> None:
        self.classes_, self.n_classes_ = classes, len(classes)


BaseClassifier.register(PlainClassifier)


class SequenceClassifier(PlainClassifier, Storable, Exportable):
    """Base class of classifiers that take sample weights and can be saved and exported.

    A subclass implements `_fit(X, y, sample_weight)`, `_predict_proba(X)`, `_tensors` (for saving) and
    `_output_module` (for exporting).
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier to labelled sequences; a previous fit is discarded.

        Args:
            X: sequences, as an array or tensor `(n, channels, time)`, a list of arrays `(channels, time)`, a
                list of frames of pandas or polars (rows are steps), a frame indexed by (instance, time) or
                with a column `id`, `data.Labelled` or `data.Sequences`; NaN where a value is missing.
            y: one label per sequence; by default the labels of `X` (those of `Labelled`, or the column
                `label` of a frame).
            sample_weight: weight of each sequence; only ratios matter, and twice the weight counts as two
                copies.
        """
        self.reset()
        return self._fit_labelled(self._learn_collection(X), y, sample_weight)

    def stream(self, *, length: int | None = None, static: Any = None) -> ClassifierStream:
        """Open a stream for online prediction: `predict_proba` of the steps so far, after each step.

        Args:
            length: number of steps of a whole sequence; required by networks with `time_embedding`. Without
                it, a stream has no end.
            static: the static features of the sequence, if the model was fitted with some.
        """
        from seq2tens.estimators.streaming import ClassifierStream

        return ClassifierStream(self, length=length, static=static)

    def _facts(self) -> dict[str, Any]:
        return {"classes": plain.encode_labels(self.classes_), **super()._facts()}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self._set_classes(plain.decode_labels(facts["classes"]))
