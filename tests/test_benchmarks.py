"""The benchmarks run, and what the documentation shows is what they wrote. No test asserts a time."""

import json
from pathlib import Path

import pytest
from benchmarks import accuracy, report, run
from benchmarks.registry import SUITES, Case, cases

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


def test_single_calls_are_timed_where_latency_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SINGLE_CALLS", 20)
    case = Case("suite", "case", "one", {"one": lambda: lambda: sum(range(1000))}, latency=True)
    run.run([case], tmp_path / "results.json", seconds=0.01)
    data = json.loads((tmp_path / "results.json").read_text())
    row = data["results"][0]["contenders"]["one"]
    assert 0 < row["p50"] <= row["p99"]
    assert "| case | one, ms | p50 of one, ms | p99 of one, ms |" in report.tables(data)


def test_the_time_of_a_sample_is_scaled():
    work = lambda: lambda: sum(range(20_000))  # noqa: E731
    case = Case("suite", "case", "all", {"all": work, "tenth": work}, shares={"tenth": 0.1})
    assert run.measure(case, seconds=0.01)["contenders"]["tenth"]["ratio"] > 3


def test_peak_memory_sees_an_allocation(monkeypatch):
    monkeypatch.setattr(run._memory, "_KEPT", run._memory._KEPT)  # put back afterwards
    size = 200 * 2**20
    assert 0.9 * size < run.peak_bytes(lambda: bytearray(size)) < 1.2 * size


def test_the_documentation_shows_the_results_on_file():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    assert report.tables(results) in (ROOT / "docs" / "performance.md").read_text()


def test_accuracies_are_kept_and_reported(tmp_path):
    results, page = tmp_path / "accuracy.csv", tmp_path / "page.md"
    rows = [accuracy.Row("ECG", "fcn-ls2t", seed, 0.9 - seed / 50, 2.0, 1.0) for seed in (0, 1)]
    for row in rows:
        accuracy.append(row, results)
    assert accuracy.read(results) == rows
    page.write_text(f"before\n{report.START}\n{report.END}\nafter\n")
    accuracy.report(results, page)
    assert "| ECG | 0.890 ± 0.014 (2) | 0.790 |" in page.read_text()
    assert "| ECG | 2.0 + 1.0 |" in page.read_text()


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")  # in aeon's distances
def test_a_classifier_is_measured_once(tmp_path):
    results = tmp_path / "accuracy.csv"
    for _ in range(2):
        accuracy.run(["JapaneseVowels"], ["dtw"], seeds=3, results=results)
    (row,) = accuracy.read(results)
    assert row.accuracy > 0.9
    assert row.fit_seconds > 0


def test_the_accuracy_page_is_what_was_measured(tmp_path):
    page = tmp_path / "accuracy.md"
    page.write_text((ROOT / "docs/accuracy.md").read_text())
    accuracy.report(ROOT / "benchmarks/accuracy.csv", page)
    assert page.read_text() == (ROOT / "docs/accuracy.md").read_text()
