"""What carried a prediction: contributions of variables, times and pairs of times that add up to it."""

from seq2tens.explaining.decomposition import explain
from seq2tens.explaining.explanation import Explanation, PairOfTimes, Row, VariableAt

__all__ = ["Explanation", "PairOfTimes", "Row", "VariableAt", "explain"]
