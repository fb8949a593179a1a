"""What reports of all experiments say of runs that differ in their seed."""

from dataclasses import dataclass

import pytest

from seq2tens.experiments.core.rows import AnyRow
from seq2tens.experiments.report.runs import Runs, difference, grouped, in_order, mean_of
from seq2tens.experiments.report.tables import NONE, NOT_RUN, Score, not_run, number


@dataclass(frozen=True)
class Finished(AnyRow):
    key: str
    model: str
    score: float | None
    peak_mib: float = 1.0


def runs(*scores):
    return Runs(tuple(Finished(str(i), "a", score) for i, score in enumerate(scores)))


def test_means_and_spreads_are_those_of_what_was_measured():
    assert runs(0.2, None, 0.4).mean("score") == pytest.approx(0.3)
    assert runs(0.2, None, 0.4).spread("score") == pytest.approx(0.02**0.5)
    assert runs(0.2, None).spread("score") is None
    assert runs(None).mean("score") is None
    assert mean_of([]) is None


def test_a_score_stands_beside_the_published_one():
    cell = runs(0.2, 0.4).score("score", Score(0.25, 0.01))
    assert (cell.text, cell.published_label, cell.change_text) == ("0.300 ± 0.141", "0.250 ± 0.010", "+0.050")
    assert runs(0.2).score("score").published is None
    assert runs(None).score("score", Score(0.25)).text == NONE


def test_what_was_not_run_or_cannot_be():
    assert (not_run(Score(0.5)).text, not_run(Score(0.5)).published) == (NOT_RUN, 0.5)
    assert not_run(None).text == number(None).text == NONE
    assert number(1234.56, 1).text == "1,234.6"


def test_rows_are_grouped_in_the_order_in_which_they_come():
    rows = [Finished(key, model, 0.5) for key, model in (("1", "b"), ("2", "a"), ("3", "b"))]
    groups = grouped(rows, "model")
    assert list(groups) == [("b",), ("a",)]
    assert [row.key for row in groups["b",]] == ["1", "3"]


def test_names_come_in_the_order_of_a_registry():
    assert in_order(["x", "b", "a", "b"], ["a", "b", "c"]) == ["a", "b", "x"]


def test_a_difference_is_told_with_that_of_the_paper():
    text = difference("MSE", (0.1, 0.3), (Score(0.2), Score(0.3)))
    assert text == "MSE −0.200 (in the paper −0.100)"


def test_numbers_that_cannot_be_are_refused():
    @dataclass(frozen=True)
    class Row(AnyRow):
        share: float | None
        seconds: float
        peak_mib: float = 1.0
        SHARES = ("share",)
        AMOUNTS = ("seconds",)

    assert Row(None, 1.0).share is None
    with pytest.raises(ValueError, match=r"`share` must lie in \[0, 1\] or be empty, got 2"):
        Row(2.0, 1.0)
    with pytest.raises(ValueError, match="`seconds` must be finite and at least 0, got -1"):
        Row(0.5, -1.0)
