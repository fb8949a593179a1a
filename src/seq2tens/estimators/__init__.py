"""Classifiers, regressors, feature maps and imputers in the style of scikit-learn and aeon."""

from seq2tens.estimators.base import PlainClassifier as PlainClassifier
from seq2tens.estimators.base import SequenceClassifier
from seq2tens.estimators.choosing import Comparison, Trial, compare
from seq2tens.estimators.classifiers import TEST_PARAMS as TEST_PARAMS
from seq2tens.estimators.classifiers import (
    DeepLS2TClassifier,
    FCNClassifier,
    FCNLS2TClassifier,
    ResNetClassifier,
)
from seq2tens.estimators.devices import make_fabric as make_fabric
from seq2tens.estimators.evaluation import Evaluation, RegressionEvaluation, evaluate, evaluate_regression
from seq2tens.estimators.features import LS2TFeatures, Seq2TensFeatures
from seq2tens.estimators.imputers import (
    IMPUTERS,
    BRITSImputer,
    CSDIImputer,
    ForwardImputer,
    GPVAEImputer,
    HELIXImputer,
    HIVAEImputer,
    ImputationReport,
    ImputeFormerImputer,
    Imputer,
    ImputerStream,
    LatentImputer,
    LinearImputer,
    LS2TImputer,
    MeanImputer,
    PointImputer,
    PyPOTSImputer,
    SAITSImputer,
    TimesNetImputer,
    VAEImputer,
    imputation_report,
)
from seq2tens.estimators.inputs import as_labels as as_labels
from seq2tens.estimators.inputs import as_sequences as as_sequences
from seq2tens.estimators.interruption import InterruptedFitWarning
from seq2tens.estimators.networks import NetworkClassifier
from seq2tens.estimators.networks import WithHead as WithHead
from seq2tens.estimators.networks import accuracy as accuracy
from seq2tens.estimators.networks import auto_scaling as auto_scaling
from seq2tens.estimators.networks import forward_batch as forward_batch
from seq2tens.estimators.random import (
    Contributions,
    Explanation,
    Filter,
    RandomLS2TClassifier,
    RandomLS2TFeatures,
    RandomLS2TRegressor,
)
from seq2tens.estimators.regression import SequenceRegressor
from seq2tens.estimators.saving import Storable
from seq2tens.estimators.seeds import RandomState as RandomState
from seq2tens.estimators.seeds import seed_of as seed_of
from seq2tens.estimators.streaming import ClassifierStream

# Names on the command line.
MODELS: dict[str, type[SequenceClassifier]] = {
    "fcn-ls2t": FCNLS2TClassifier,
    "ls2t": DeepLS2TClassifier,
    "fcn": FCNClassifier,
    "resnet": ResNetClassifier,
    "random-ls2t": RandomLS2TClassifier,
}
REGRESSORS: dict[str, type[SequenceRegressor]] = {"random-ls2t": RandomLS2TRegressor}
load = Storable.load

__all__ = [
    "IMPUTERS",
    "MODELS",
    "REGRESSORS",
    "BRITSImputer",
    "CSDIImputer",
    "ClassifierStream",
    "Comparison",
    "Contributions",
    "DeepLS2TClassifier",
    "Evaluation",
    "Explanation",
    "FCNClassifier",
    "FCNLS2TClassifier",
    "Filter",
    "ForwardImputer",
    "GPVAEImputer",
    "HELIXImputer",
    "HIVAEImputer",
    "ImputationReport",
    "ImputeFormerImputer",
    "Imputer",
    "ImputerStream",
    "InterruptedFitWarning",
    "LS2TFeatures",
    "LS2TImputer",
    "LatentImputer",
    "LinearImputer",
    "MeanImputer",
    "NetworkClassifier",
    "PointImputer",
    "PyPOTSImputer",
    "RandomLS2TClassifier",
    "RandomLS2TFeatures",
    "RandomLS2TRegressor",
    "RegressionEvaluation",
    "ResNetClassifier",
    "SAITSImputer",
    "Seq2TensFeatures",
    "SequenceClassifier",
    "SequenceRegressor",
    "TimesNetImputer",
    "Trial",
    "VAEImputer",
    "compare",
    "evaluate",
    "evaluate_regression",
    "imputation_report",
    "load",
]
