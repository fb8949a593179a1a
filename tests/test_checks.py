"""Checks of settings that come from people and from files: numbers in an interval, fields of a class."""

import math
from dataclasses import dataclass

import pytest

from seq2tens._checks import ArgumentError, between, from_fields


@dataclass
class Settings:
    rate: float
    steps: int = 3


@pytest.mark.parametrize("value", [0.1, 1, 0.999])
def test_inside(value):
    between("rate", value, 0, 1 + 1e-9)


@pytest.mark.parametrize(("value", "low_included"), [(0, False), (1, False), (1, True), (math.nan, True)])
def test_outside(value, low_included):
    bracket = r"\[" if low_included else r"\("
    with pytest.raises(ArgumentError, match=rf"`rate` must lie in {bracket}0, 1\), got {value}"):
        between("rate", value, 0, 1, low_included=low_included)


def test_the_low_end_may_belong_to_it():
    between("rate", 0, 0, 1, low_included=True)


@pytest.mark.parametrize("value", [True, "0.5", None])
def test_a_number_is_no_truth_and_no_text(value):
    with pytest.raises(TypeError, match="`rate` must be a number, got"):
        between("rate", value, 0, 1)


def test_fields_are_those_of_the_class():
    assert from_fields(Settings, {"rate": 0.5}, "settings") == Settings(0.5)
    with pytest.raises(ArgumentError, match=r"`settings` must only have the keys .* got also \['rat'\]"):
        from_fields(Settings, {"rate": 0.5, "rat": 1}, "settings")
    with pytest.raises(ArgumentError, match=r"must have the keys \['rate'\], got none for \['rate'\]"):
        from_fields(Settings, {"steps": 1}, "settings")
    with pytest.raises(TypeError, match="`settings` must be a mapping, got list"):
        from_fields(Settings, [1], "settings")
