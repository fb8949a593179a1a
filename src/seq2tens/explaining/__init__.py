"""Explanations of predictions: contributions of variables, times and pairs of times that add up to them."""

from seq2tens.explaining.decomposition import explain
from seq2tens.explaining.explanation import Explanation, PairOfTimes, Row, VariableAt
from seq2tens.explaining.features import FeatureContribution, FeatureExplanation, explain_features

__all__ = [
    "Explanation",
    "FeatureContribution",
    "FeatureExplanation",
    "PairOfTimes",
    "Row",
    "VariableAt",
    "explain",
    "explain_features",
]
