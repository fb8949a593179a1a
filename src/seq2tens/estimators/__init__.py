"""Classifiers and feature maps in the manner of scikit-learn and aeon."""

from seq2tens.estimators.base import SequenceClassifier
from seq2tens.estimators.classifiers import (
    DeepLS2TClassifier,
    FCNClassifier,
    FCNLS2TClassifier,
    ResNetClassifier,
)
from seq2tens.estimators.evaluation import Evaluation, evaluate
from seq2tens.estimators.features import LS2TFeatures, Seq2TensFeatures
from seq2tens.estimators.networks import NetworkClassifier
from seq2tens.estimators.saving import Storable

# Names for the shell.
MODELS: dict[str, type[SequenceClassifier]] = {
    "fcn-ls2t": FCNLS2TClassifier,
    "ls2t": DeepLS2TClassifier,
    "fcn": FCNClassifier,
    "resnet": ResNetClassifier,
}
load = Storable.load

__all__ = [
    "MODELS",
    "DeepLS2TClassifier",
    "Evaluation",
    "FCNClassifier",
    "FCNLS2TClassifier",
    "LS2TFeatures",
    "NetworkClassifier",
    "ResNetClassifier",
    "Seq2TensFeatures",
    "SequenceClassifier",
    "evaluate",
    "load",
]
