"""The free algebra T(V): elements, products, lifts, words, and the full feature map."""

from __future__ import annotations

from seq2tens.algebra import lifts
from seq2tens.algebra.free_tensor import FreeTensor, product
from seq2tens.algebra.full_map import reference_scan, seq2tens, signature
from seq2tens.algebra.lifts import Lift, PolynomialLift, PowerLift, monomials
from seq2tens.algebra.strings import StringFeatures, string_features
from seq2tens.algebra.words import WordSum, evaluate, half_quasi_shuffle, quasi_shuffle, word

__all__ = [
    "FreeTensor",
    "Lift",
    "PolynomialLift",
    "PowerLift",
    "StringFeatures",
    "WordSum",
    "evaluate",
    "half_quasi_shuffle",
    "lifts",
    "monomials",
    "product",
    "quasi_shuffle",
    "reference_scan",
    "seq2tens",
    "signature",
    "string_features",
    "word",
]
