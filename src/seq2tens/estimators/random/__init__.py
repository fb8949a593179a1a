"""Random features of sequences, and linear models on them."""

from seq2tens.estimators.random.contributions import Contributions
from seq2tens.estimators.random.explanation import Explanation, Filter
from seq2tens.estimators.random.explanation import describe_features as describe_features
from seq2tens.estimators.random.features import RandomLS2TFeatures
from seq2tens.estimators.random.ls2t import RandomLS2TClassifier, RandomLS2TRegressor

__all__ = [
    "Contributions",
    "Explanation",
    "Filter",
    "RandomLS2TClassifier",
    "RandomLS2TFeatures",
    "RandomLS2TRegressor",
]
