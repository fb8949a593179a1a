"""What all classifiers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from aeon.classification.base import BaseClassifier
from jaxtyping import Shaped
from typing_extensions import Self

from seq2tens._checks import require
from seq2tens._storage import Tensors
from seq2tens.data import Preparation, Sequences
from seq2tens.estimators.inputs import SequenceInput, as_labels
from seq2tens.estimators.saving import Storable, plain

if TYPE_CHECKING:
    from seq2tens.estimators.streaming import ClassifierStream


class PlainClassifier(SequenceInput, BaseClassifier):
    """A classifier of sequences: of one channel or more, of unequal lengths, with gaps.

    A subclass has `_fit(X, y)` and `_predict_proba(X)`, in which `X` is a `Sequences`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
    }

    def _predict(self, X: Sequences) -> Shaped[np.ndarray, " rows"]:
        return self.classes_[self._predict_proba(X).argmax(axis=1)]

    def _check_y(
        self, y: Any, n_cases: int, update_classes: bool = True, allow_single_class: bool = False
    ) -> Shaped[np.ndarray, " rows"]:
        """Labels as an array; to be scored, they may be of one class only, or of one not seen in training."""
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
        self._class_dictionary = {label: i for i, label in enumerate(classes)}


class SequenceClassifier(PlainClassifier, Storable):
    """A classifier that can be saved, and that takes weights.

    A subclass has `_fit(X, y, sample_weight)`, `_predict_proba(X)` and, to be saved, `_tensors`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled sequences; what was learned before is forgotten.

        Args:
            X: sequences, as an array `(n, channels, time)`, a list of arrays `(channels, time)`, a list of
                pandas frames (rows are steps), a frame indexed by (instance, time), or `data.Sequences`; NaN
                where a value is missing.
            y: one label per sequence.
            sample_weight: how much each sequence counts, as if it were there so many times; only ratios
                matter.
        """
        self.reset()
        X = self._preprocess_collection(X)
        self._fit(X, self._check_y(y, len(X)), sample_weight)
        self.is_fitted = True
        return self

    def stream(self, *, length: int | None = None, static: Any = None) -> ClassifierStream:
        """Open a stream: fed step by step, it gives what `predict_proba` would give for the steps so far.

        Args:
            length: steps of a whole sequence. A network with `time_embedding` must know it; others have no
                end.
            static: the static features of the sequence, if the model was fitted with some.
        """
        from seq2tens.estimators.streaming import ClassifierStream

        return ClassifierStream(self, length=length, static=static)

    def _facts(self) -> dict[str, Any]:
        return {
            "classes": plain.encode_labels(self.classes_),
            "preparation": self.preparation_.state(),
            "metadata": self.metadata_,
        }

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        self._set_classes(plain.decode_labels(facts["classes"]))
        self.preparation_ = Preparation.from_state(facts["preparation"])
        self.metadata_ = facts["metadata"]
