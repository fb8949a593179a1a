"""Saving of estimators: a folder with tensors and a JSON document, written completely or not at all."""

from seq2tens.estimators.saving.estimator import Storable, restored

__all__ = ["Storable", "restored"]
