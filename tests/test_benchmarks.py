"""The benchmarks run, and what the documentation shows is what they wrote. No test asserts a time."""

import csv
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from benchmarks import (
    accuracy,
    accuracy_report,
    accuracy_rows,
    charts,
    csv_rows,
    forward_table,
    kl,
    reliability,
    report,
    run,
)
from benchmarks.registry import SUITES, Case, cases

from seq2tens.data import Sequences
from seq2tens.experiments.report.statistics import Scores

ROOT = Path(__file__).parents[1]


def test_every_suite_yields_cases_whose_peer_takes_part():
    found = cases([])
    assert {case.suite for case in found} == set(SUITES)
    assert len({(case.suite, case.name) for case in found}) == len(found)
    assert all(case.peer in case.contenders for case in found)


def test_a_case_is_measured_and_reported(tmp_path):
    work = lambda: lambda: sum(range(1000))  # noqa: E731
    case = Case("suite", "case", "one", {"one": work, "two": work})
    run.run([case], tmp_path / "results.json", seconds=0.01)
    other = Case("other", "case", "one", {"one": work})
    run.run([other], tmp_path / "results.json", seconds=0.01)  # adds to the file
    data = json.loads((tmp_path / "results.json").read_text())
    rows = data["results"][0]["contenders"]
    assert rows["one"]["ratio"] == 1
    assert rows["two"]["min"] > 0
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.START}\nold\n{report.END}\nafter\n")
    report.write(tmp_path / "results.json", page)
    text = page.read_text()
    assert "| case |" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_only_the_cases_that_were_measured_are_replaced(tmp_path):
    work = lambda: lambda: sum(range(1000))  # noqa: E731
    out = tmp_path / "results.json"

    def measure(*names, only=""):
        run.run([Case("suite", name, "one", {"one": work}) for name in names], out, 0.01, only)
        rows = json.loads(out.read_text())["results"]
        return [row["case"] for row in rows], [row["contenders"]["one"]["min"] for row in rows]

    measure("first", "second", "third")
    data = json.loads(out.read_text())
    for row in data["results"]:
        row["contenders"]["one"]["min"] = 0.0
    out.write_text(json.dumps(data))
    names, times = measure("second", only="second")
    assert names == ["first", "second", "third"]
    assert [time > 0 for time in times] == [False, True, False]
    names, times = measure("third", "new")  # a whole suite: the other cases are no more
    assert names == ["third", "new"]
    assert min(times) > 0


def test_single_calls_are_timed_where_latency_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SINGLE_CALLS", 20)
    case = Case("suite", "case", "one", {"one": lambda: lambda: sum(range(1000))}, latency=True)
    run.run([case], tmp_path / "results.json", seconds=0.01)
    data = json.loads((tmp_path / "results.json").read_text())
    row = data["results"][0]["contenders"]["one"]
    assert 0 < row["p50"] <= row["p99"]
    assert "| case | one, ms | p50 of one, ms | p99 of one, ms |" in report.tables(data)


def test_the_time_of_a_sample_is_scaled(monkeypatch):
    """By a clock that only the work moves, so that other load on the machine does not matter."""
    ticks = []
    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter=lambda: 1e-3 * len(ticks)))
    work = lambda: lambda: ticks.append(1)  # noqa: E731
    case = Case("suite", "case", "all", {"all": work, "tenth": work}, shares={"tenth": 0.1})
    assert run.measure(case, seconds=0.01)["contenders"]["tenth"]["ratio"] == pytest.approx(10)


@pytest.mark.slow
def test_peak_memory_sees_an_allocation():
    size = 200 * 2**20
    assert 0.9 * size < run.peak_bytes(lambda: bytearray(size)) < 1.2 * size


def test_the_documentation_shows_the_results_on_file():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    assert report.tables(results) in (ROOT / "docs" / "performance.md").read_text()


def test_the_papers_forward_times_stand_beside_ours(tmp_path):
    names = {case.name for case in cases(["forward_table"])}
    assert len(names) == 6 * 6 * 2
    contenders = {"fused": {"min": 2e-3, "ratio": 1}, "other layer": {"min": 5e-3, "ratio": 2.5}}
    slower = {"fused": {"min": 3e-3, "ratio": 1}, "other layer": {"min": 9e-3, "ratio": 3}}
    rows = [
        {"suite": "forward_table", "case": name, "peer": "fused", "contenders": found}
        for name, found in [("L=1024 LS2T-R M=10 LSTM", contenders), ("L=1024 LS2T-R M=10 Conv1D", slower)]
    ]
    assert {row["case"] for row in rows} <= names
    page = report.tables({"machine": {}, "results": rows})
    assert "| L=1024 LS2T-R M=10 | 6 | 617 | 0.317 | 2 | 2.5 | 3 |" in page
    assert "| L=1024 LSTM | 3700 |  |  | 5 |  |  |" in page
    assert "| L=32 LS2T M=2 | 1.7 | 70.6 | 0.476 |  |  |  |" in page  # not measured
    (tmp_path / "results.json").write_text(json.dumps({"results": rows}))
    assert report.forward_times(tmp_path / "results.json") in page


@pytest.mark.data("../published")
def test_the_papers_forward_times_are_the_published_ones():
    table = Path(os.environ["SEQ2TENS_DATA"], "..", "published", "forward_pass_seconds_2080ti.csv")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    found = [(row.length, row.layer, str(row.order or ""), row.seconds) for row in forward_table.published()]
    expected = [(int(row["length"]), row["layer"], row["order"]) for row in rows]
    assert [row[:3] for row in found] == expected
    assert [row[3] for row in found] == pytest.approx([float(row["seconds"]) for row in rows], rel=1e-9)


def test_accuracies_are_kept_and_reported(tmp_path):
    results, page = tmp_path / "accuracy.csv", tmp_path / "page.md"
    rows = [accuracy.Row("ECG", "fcn-ls2t", seed, 0.9 - seed / 50, 2.0, 1.0) for seed in (0, 1)]
    for row in rows:
        accuracy.append(row, results)
    assert csv_rows.read(accuracy.Row, results) == rows
    page.write_text(f"before\n{report.START}\n{report.END}\nafter\n")
    accuracy.report(results, page)
    assert "| ECG | 0.890 ± 0.014 (2) | 0.790 |" in page.read_text()
    assert "| ECG | 2.0 + 1.0 |" in page.read_text()
    assert "| mean of 1 | 0.890 | 0.790 |" in page.read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")  # in aeon's distances
def test_a_classifier_is_measured_once(tmp_path):
    results = tmp_path / "accuracy.csv"
    for _ in range(2):
        accuracy.run(["JapaneseVowels"], ["dtw"], seeds=3, results=results)
    (row,) = csv_rows.read(accuracy.Row, results)
    assert row.accuracy > 0.9
    assert row.fit_seconds > 0


def univariate_rows():
    """Our model wins on one data set, draws on one and loses on one; on a fourth one it is alone."""
    ours = {"ACSF1": 0.9, "BME": 0.8, "CBF": 0.7, "Fish": 0.6}
    other = {"ACSF1": 0.8, "BME": 0.8, "CBF": 0.9}
    rows = [
        accuracy.Row(d, "random-ls2t", seed, a, 1.0, 0.5, 1.5) for d, a in ours.items() for seed in (0, 1)
    ]
    return [*rows, *(accuracy.Row(d, "quant", 0, a, 2.0, 1.0, 3.0) for d, a in other.items())]


def test_models_are_compared_where_all_have_finished():
    text = accuracy_report.tables(univariate_rows())
    assert "The 3 of 49 data sets that all have finished." in text
    assert "| random-ls2t | 0.8000 |  |  | 4.5 |" in text
    assert "| quant | 0.8333 | 1 / 1 / 1 | 1 | 9.0 |" in text
    assert "| BME | 0.800 ± 0.000 (2) | 0.800 | 1.000 | 1.000 |" in text  # beside HC2 and MR-Hydra
    assert "Fish" not in text


def test_the_signed_rank_test_is_that_of_wilcoxon():
    numbers = {f"set {i}": {"ours": 0.5 + i / 100, "other": 0.5 - i / 100} for i in range(1, 7)}
    found = accuracy_report.compare(Scores.from_dict(numbers), "ours", "other")
    assert found == (6, 0, 0, pytest.approx(2 / 2**6))  # all signs alike, one way or the other
    same = {name: {"ours": 0.5, "other": 0.5} for name in numbers}
    assert accuracy_report.compare(Scores.from_dict(same), "ours", "other") == (0, 6, 0, 1.0)


def test_the_pictures_of_accuracies_stand_in_the_page(tmp_path):
    results, page = tmp_path / "accuracy.csv", tmp_path / "page.md"
    for row in univariate_rows():
        accuracy.append(row, results)
    page.write_text(f"{report.START}\n{report.END}\n")
    accuracy.report(results, page)
    links = re.findall(r"^!\[(.+)\]\((.+)\)$", page.read_text(), re.MULTILINE)
    assert [file for _, file in links] == [
        f"figures/accuracy-univariate-{x}.svg" for x in ("ranks", "seconds")
    ]
    for text, file in links:
        assert "random-ls2t" in text
        assert ElementTree.parse(tmp_path / file).getroot().get("aria-label") == text


def test_reliability_is_kept_and_drawn(tmp_path):
    """Two of three are right that were given 0.9, and none of those that were given 0.55."""
    results, page = tmp_path / "accuracy.csv", tmp_path / "page.md"
    confidence, correct = np.array([0.9, 0.9, 0.9, 0.55]), np.array([True, True, False, False])
    for model in ("random-ls2t", "multirocket-hydra"):
        sure = confidence if model == "random-ls2t" else np.ones(4)
        counts = accuracy_rows.Bin.count("ECG", model, sure, correct)
        csv_rows.append(counts, tmp_path / "reliability.csv")
    bins = csv_rows.read(accuracy_rows.Bin, tmp_path / "reliability.csv")
    ours, other = reliability.curves(bins)
    assert ours.share[[5, 9]].tolist() == [0.25, 0.75]
    assert ours.accuracy[9] == pytest.approx(2 / 3)
    assert ours.calibration_error == pytest.approx(0.75 * (0.9 - 2 / 3) + 0.25 * 0.55)
    assert other.calibration_error == 0.5
    accuracy.append(accuracy.Row("ECG", "random-ls2t", 0, 0.5, 2.0, 1.0), results)
    page.write_text(f"{report.START}\n{report.END}\n")
    accuracy.report(results, page)
    assert "| multirocket-hydra | 1.000 | 0.500 | 0.500 |" in page.read_text()
    picture = ElementTree.parse(tmp_path / accuracy_report.DIAGRAM).getroot()
    assert picture.get("aria-label") == reliability.caption(bins)


@pytest.mark.data("../published/ucr_accuracy.csv")
def test_the_figures_of_the_archive_are_the_published_ones():
    table = Path(os.environ["SEQ2TENS_DATA"], "..", "published", "ucr_accuracy.csv")
    with table.open() as file:
        published = {(row["dataset"], row["method"]): row["default_split"] for row in csv.DictReader(file)}
    for row in accuracy_rows.ucr_published():
        assert row.published_as.removesuffix("_eq").removesuffix("_nmv") == row.dataset
        for method, value in row.accuracy.items():
            assert value == float(published[row.published_as, method])


@pytest.mark.data("tsc", "ucr", "uea")
def test_all_data_sets_of_the_groups_are_at_hand():
    folder = Path(os.environ["SEQ2TENS_DATA"])
    assert {path.stem for path in folder.glob("ucr/*.npz")} == set(accuracy_rows.GROUPS["univariate"])
    multivariate = {path.stem for archive in ("tsc", "uea") for path in folder.glob(f"{archive}/*.npz")}
    assert multivariate == set(accuracy_rows.GROUPS["multivariate"])


def test_models_of_aeon_get_equal_lengths_without_gaps():
    train = Sequences.from_list([np.array([[1.0], [np.nan], [3.0]]), np.array([[5.0]])])
    test = Sequences.from_list([np.ones((12, 1))])
    series, unseen = accuracy.collections(train, test, "quant")
    assert series.shape == (2, 1, 12)
    assert unseen.shape == (1, 1, 12)
    assert series[:, 0].tolist() == [[1, 2, 3] + [0] * 9, [5] + [0] * 11]
    short, _ = accuracy.collections(train, train, "hydra")
    assert short.shape == (2, 1, accuracy.SHORTEST)
    as_it_is, _ = accuracy.collections(train, test, "random-ls2t")
    assert [x.shape for x in as_it_is] == [(1, 3), (1, 1)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")  # in aeon's QUANT
@pytest.mark.parametrize("model", ["random-ls2t", "quant", "hydra", "minirocket"])
def test_compared_models_run(model):
    row, bins = accuracy.measure("ItalyPowerDemand", model, 0)
    assert row.accuracy > 0.9
    assert row.core_seconds > 0
    assert sum(b.correct for b in bins) == round(row.accuracy * sum(b.series for b in bins))


def test_the_accuracy_page_is_what_was_measured(tmp_path):
    page = tmp_path / "accuracy.md"
    page.write_text((ROOT / "docs/accuracy.md").read_text())
    accuracy.report(ROOT / "benchmarks/accuracy.csv", page)
    assert page.read_text() == (ROOT / "docs/accuracy.md").read_text()


@pytest.mark.parametrize("kernel", ["cauchy", "matern12"])
def test_both_sides_of_the_divergence_compute_the_same(kernel):
    given, prior = kl.bands(torch.float64, 20, 3, False), kl.Prior(kernel)
    torch.testing.assert_close(kl.banded(given, prior)(), kl.dense(given, prior)(), rtol=1e-8, atol=0)


def test_tables_are_written_and_measured(tmp_path, capsys):
    from benchmarks import tables

    for path in tables.write(tmp_path / "large", 3000):
        tables.measure(path, path)
        assert re.match(rf"{path.suffix} +3000 rows .* times the file", capsys.readouterr().out)


def test_the_readme_says_what_was_measured(tmp_path):
    """`python -m benchmarks.charts` writes the README's sentences and draws the pictures."""
    readme = tmp_path / "README.md"
    readme.write_text((ROOT / "README.md").read_text())
    charts.write(readme, tmp_path)
    assert readme.read_text() == (ROOT / "README.md").read_text()
    for name in ("accuracy.svg", "speed.svg"):
        drawn, kept = ((folder / name).read_text() for folder in (tmp_path, ROOT / "docs" / "figures"))
        numbers = re.compile(r"<text[^>]*>([^<]*)</text>")
        assert numbers.findall(drawn) == numbers.findall(kept) != [], name


def test_a_chart_counts_seeds_as_their_mean_and_leaves_out_what_is_not_finished():
    rows = [
        accuracy.Row("A", "ls2t", 0, 0.8, 1.0, 0.5),
        accuracy.Row("A", "ls2t", 1, 0.6, 3.0, 0.5),
        accuracy.Row("B", "ls2t", 0, 1.0, 2.0, 1.0),
        accuracy.Row("A", "fcn", 0, 1.0, 1.0, 1.0),
    ]
    ((model, point),) = charts.points(rows).items()
    assert (model, point.datasets) == ("ls2t", 2)
    assert point.accuracy == pytest.approx(0.85)
    assert point.seconds == pytest.approx(2.5 + 3.0)
