"""Strings: Φ with one-hot letters counts subsequences."""

from __future__ import annotations

from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2tens.algebra import string_features


def test_the_example_of_the_paper():
    features = string_features(["aabc"], 3)
    counted = {}
    for m in (2, 3):
        for letters in product("abc", repeat=m):
            value = features.counts("".join(letters)).item()
            if value:
                counted["".join(letters)] = value
    assert counted == {"aa": 1, "ab": 2, "ac": 2, "bc": 1, "aab": 1, "aac": 1, "abc": 2}


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(st.text("abc", max_size=8), min_size=1, max_size=4))
def test_counts_by_brute_force(strings):
    features = string_features(strings, 3, "cab")
    for m in range(4):
        for letters in product("abc", repeat=m):
            expected = [sum(pick == letters for pick in combinations(s, m)) for s in strings]
            assert features.counts("".join(letters)).tolist() == expected


def test_alphabets():
    assert string_features(["ba", "", "cab"], 1).alphabet == ("a", "b", "c")
    given_order = string_features(["ba", ""], 2, "zba")
    assert given_order.alphabet == ("z", "b", "a")
    assert given_order.tensor[(1, 2)].tolist() == [1, 0]
    assert given_order.tensor.dtype == torch.float64


def test_empty_strings_only():
    features = string_features(["", ""], 2, "ab")
    assert features.counts("").tolist() == [1, 1]
    assert features.counts("ab").tolist() == [0, 0]


ERRORS = [
    (
        lambda: string_features(["ab", "axb"], 2, "ab"),
        ValueError,
        r"`strings\[1\]` must use .*'b'.*, got 'x'",
    ),
    (lambda: string_features(["ab"], 2).counts("az"), ValueError, "`word` must use letters of .*, got 'z'"),
    (lambda: string_features(["ab"], 2).counts("aba"), IndexError, "at most 2 letters"),
    (lambda: string_features("ab", 2), TypeError, "`strings` must be a sequence of strings, got the single"),
    (lambda: string_features([], 2), ValueError, "`strings` must hold at least one string"),
    (lambda: string_features([""], 2), ValueError, "`alphabet` must be given when every string is empty"),
    (
        lambda: string_features(["a"], 2, "aba"),
        ValueError,
        r"`alphabet` must not repeat letters, got \['a'\]",
    ),
    (lambda: string_features(["a"], 0), ValueError, "`order` must be at least 1, got 0"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_name_the_argument_and_the_value(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
