"""Sequences that are split over processes along time: results and gradients are those of one process."""

import pytest

from distributed.problems import averaged_errors, dropped, function_errors, halves, mistakes, network_errors
from distributed.processes import together


@pytest.mark.slow
def test_layer_as_a_function():
    for errors in together(function_errors, 2):
        assert {key: error for key, error in errors.items() if error > 1e-10} == {}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_layer_as_a_function_on_other_numbers_of_ranks(ranks):
    for errors in together(function_errors, ranks):
        assert {key: error for key, error in errors.items() if error > 1e-10} == {}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_networks(ranks):
    for errors in together(network_errors, ranks):
        assert {key: error for key, error in errors.items() if error > 1e-10} == {}


@pytest.mark.slow
def test_means_of_gradients():
    assert max(together(averaged_errors, 2)) < 1e-10


@pytest.mark.slow
def test_groups_within_the_processes():
    assert max(together(halves, 4)) < 1e-10


@pytest.mark.slow
def test_dropout_is_the_same_on_all_ranks():
    (features, left), *others = together(dropped, 3)
    assert all(other == (features, left) for other in others)
    assert any(value == 0 for row in features for value in row)
    assert any(not channel for row in left for channel in row)
    assert any(channel for row in left for channel in row)


@pytest.mark.slow
def test_mistakes_are_told():
    for told in together(mistakes, 2):
        assert told[0].startswith(
            "`module` must be a layer or network of seq2tens.nn, or have a `forward` that"
        )
        assert told[0].endswith("takes a `context`, got Linear")
        assert told[1] == "`x` must have 2 channels, got 3"
        assert told[2].startswith("`x` must have the same batch, channels and dtype on all ranks, got (")
        assert told[3] == "`x` must have 3 axes (batch, time, channels), got 2 with shape (4, 2)"
