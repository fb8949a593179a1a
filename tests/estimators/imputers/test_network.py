"""What imputers that train a network have in common."""

import numpy as np
import pytest

from seq2tens.data import Sequences
from seq2tens.estimators import GPVAEImputer, LS2TImputer
from seq2tens.estimators.imputers.network import constants


@pytest.mark.parametrize(
    ("kind", "steps", "low", "high"), [(LS2TImputer, 1200, 10, 300), (GPVAEImputer, 600, 10, 200)]
)
def test_epochs_by_default(kind, steps, low, high):
    """Enough for a number of steps, between two limits."""
    imputer = kind(batch_size=8)
    assert imputer._recipe(80).epochs == steps / 10
    assert imputer._recipe(10**6).epochs == low
    assert imputer._recipe(1).epochs == high
    assert kind(batch_size=8, epochs=7)._recipe(80).epochs == 7


def test_constants():
    nan = np.nan
    X = Sequences.from_list([np.array([[1.0, 5.0, nan], [2.0, nan, nan]]), np.array([[nan, 5.0, nan]])])
    np.testing.assert_array_equal(constants(X), [nan, 5.0, 0.0])
