"""Statistics give back what the paper prints, and agree with definitions and other libraries."""

import numpy as np
import pytest
from aeon.benchmarking.stats import _get_qalpha
from scipy import stats
from scipy.stats import friedmanchisquare, rankdata

from experiments.tsc.results_table import PAPER
from seq2tens.experiments.report.statistics import (
    Scores,
    critical_difference,
    mean_ranks,
    permutation_test,
    ranking,
    ranks,
    signed_rank,
)
from seq2tens.experiments.tsc import published


def scores(*rows):
    values = np.array(rows, dtype=float)
    return Scores(
        tuple(f"d{i}" for i in range(len(values))),
        tuple("abcdefgh"[: values.shape[1]]),
        values,
    )


def test_average_ranks_of_the_paper():
    found = {model: f"{rank:.3f}" for model, rank in mean_ranks(PAPER, ties="dense").items()}
    assert found == {model: f"{rank:.3f}" for model, rank in published.MEAN_RANKS.items()}


def test_permutations_of_few_numbers():
    assert permutation_test([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert permutation_test([1, 2], [1, 2]) == 1
    assert permutation_test([0.3], [0.1, 0.2]) == pytest.approx(2 / 3)
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=5), rng.normal(size=4)
    whole = stats.permutation_test(
        (ours, theirs), lambda a, b: abs(a.mean() - b.mean()), alternative="greater", vectorized=False
    )
    assert permutation_test(ours, theirs) == pytest.approx(whole.pvalue)
    with pytest.raises(ValueError, match="`left` and `right` must hold at least one number each"):
        permutation_test([], [1.0])


@pytest.mark.parametrize("ties", ["average", "dense"])
def test_ranks_are_those_of_the_definition(ties):
    rng = np.random.default_rng(0)
    table = scores(*rng.integers(0, 4, (20, 6)))
    expected = [rankdata(-row, method=ties) for row in table.values]
    np.testing.assert_array_equal(ranks(table, ties), expected)


def test_ties_share_ranks_and_gaps_have_none():
    table = scores([0.9, 0.9, 0.8, np.nan], [0.5, 0.6, np.nan, np.nan])
    np.testing.assert_array_equal(ranks(table), [[1.5, 1.5, 3, np.nan], [2, 1, np.nan, np.nan]])
    np.testing.assert_array_equal(ranks(table, "dense"), [[1, 1, 2, np.nan], [2, 1, np.nan, np.nan]])
    found = mean_ranks(table)
    assert [found[name] for name in "abc"] == [1.75, 1.25, 3]
    assert np.isnan(found["d"])


def test_a_part_without_gaps():
    part = PAPER.complete()
    assert part.models == PAPER.models
    assert set(PAPER.datasets) - set(part.datasets) == {"NetFlow", "PEMS"}
    gap = np.nan
    assert scores([1, gap, 1], [1, gap, 1], [1, 1, gap]).complete().values.tolist() == [[1, 1], [1, 1]]
    assert scores([gap, gap]).complete().values.size == 0


@pytest.mark.parametrize(
    ("models", "quantile"), [(2, 1.645), (3, 2.052), (4, 2.291), (5, 2.459), (10, 2.920)]
)
def test_critical_difference_has_the_quantiles_of_the_literature(models, quantile):
    """Demšar (2006), table 5, for a level of 0.1."""
    expected = quantile * np.sqrt(models * (models + 1) / (6 * 14))
    assert critical_difference(models, 14) == pytest.approx(expected, rel=5e-4)


def test_aeon_has_the_same_quantiles_one_place_further():
    table = _get_qalpha(0.1)
    for models in range(2, 30):
        own = critical_difference(models, 1) / np.sqrt(models * (models + 1) / 6)
        assert own == pytest.approx(table[models - 1], abs=1.1e-3)


def test_ranking_of_the_paper():
    found = ranking(PAPER.complete())
    assert found.models[:3] == ("FCN128-LS2T64-3", "FCN64-LS2T64-3", "FCN128")
    assert found.n_datasets == 14
    assert list(found.ranks) == sorted(found.ranks)
    expected = friedmanchisquare(*PAPER.complete().values.T).pvalue
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    for first, last in found.groups:
        assert found.ranks[last] - found.ranks[first] < found.critical_difference
    outside = [
        (i, j)
        for i in range(len(found.models))
        for j in range(i)
        if not any(first <= j and i <= last for first, last in found.groups)
    ]
    assert outside  # some differ, and only those that lie far enough apart
    assert all(found.ranks[i] - found.ranks[j] >= found.critical_difference for i, j in outside)


def test_models_that_cannot_be_told_apart_are_one_group():
    assert ranking(scores([1, 1, 1], [1, 1, 1])).groups == ((0, 2),)
    found = ranking(scores([0.5, 0.6, 0.7], [0.7, 0.6, 0.5]))
    assert found.p_value > 0.9
    assert found.groups == ((0, 2),)


def test_two_models_and_no_group():
    found = ranking(scores(*[[0.9, 0.8]] * 30))
    assert (found.ranks, found.groups, found.p_value) == ((1, 2), (), None)


def off(pair, samples):
    """The largest difference from the published probabilities."""
    posterior = signed_rank(PAPER, *pair, samples=samples, missing="equivalent")
    return np.abs(np.subtract(posterior.probabilities, published.SIGNED_RANK[pair])).max()


@pytest.mark.parametrize("model", ["LS2T64-3", "FCN64-LS2T64-3", "FCN128-LS2T64-3"])
def test_signed_rank_of_the_paper(model):
    """With fewer draws: they alone make the probabilities differ by up to 0.01."""
    pairs = [pair for pair in published.SIGNED_RANK if pair[1] == model]
    assert len(pairs) >= 11
    assert max(off(pair, samples=20_000) for pair in pairs) < 0.02


def test_missing_results_are_what_makes_the_difference():
    """Only so do the models with gaps have the probabilities of the paper."""
    pair = ("mvARF", "FCN64-LS2T64-3")
    expected = published.SIGNED_RANK[pair].equivalent
    dropped = signed_rank(PAPER, *pair, samples=5000)
    counted = signed_rank(PAPER, *pair, samples=5000, missing="equivalent")
    assert dropped.n_datasets == counted.n_datasets == 14
    assert abs(dropped.probabilities[1] - expected) > 0.1
    assert abs(counted.probabilities[1] - expected) < 0.02


def test_signed_rank_is_symmetric_and_repeatable():
    one, again = (signed_rank(PAPER, "FCN128", "ResNet", samples=2000) for _ in range(2))
    np.testing.assert_array_equal(one.sample, again.sample)
    turned = signed_rank(PAPER, "ResNet", "FCN128", samples=2000)
    np.testing.assert_allclose(turned.sample, one.sample[:, ::-1], atol=1e-12)
    other = signed_rank(PAPER, "FCN128", "ResNet", samples=2000, random_state=1)
    assert (other.sample != one.sample).any()


def test_signed_rank_leaves_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    signed_rank(PAPER, "FCN128", "ResNet", samples=10)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_clear_winner():
    table = scores(*[[0.5, 0.9]] * 10)
    assert signed_rank(table, "a", "b", samples=500).probabilities == (0, 0, 1)
    assert signed_rank(table, "a", "a", samples=500).probabilities == (0, 1, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranks(PAPER, "min"), "`ties` must be one of 'average', 'dense', got 'min'"),
        (lambda: ranking(PAPER), "`scores` must have no gaps, see `Scores.complete`"),
        (lambda: critical_difference(1, 5), "`n_models` must be at least 2, got 1"),
        (lambda: critical_difference(3, 5, alpha=1.0), "`alpha` must lie between 0 and 1, got 1.0"),
        (lambda: PAPER.column("GRU"), "`model` must be one of 'ARKernel', "),
        (lambda: signed_rank(PAPER, "DTW", "MUSE", rope=0), "`rope` must be above 0, got 0"),
        (lambda: signed_rank(PAPER, "DTW", "MUSE", missing="zero"), "`missing` must be one of "),
        (
            lambda: signed_rank(scores([1, np.nan], [np.nan, 1]), "a", "b"),
            "a and b must have a data set in common, got none",
        ),
        (lambda: Scores(("d",), ("a", "b"), np.ones((2, 1))), "`values` must have shape (datasets, models)"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        call()
    assert str(raised.value).startswith(message)
