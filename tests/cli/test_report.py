"""`seq2tens report`."""

import pytest

from cli.shell import done, refused
from experiments.tsc.results_table import row, write
from seq2tens.experiments import report


@pytest.fixture
def results(tmp_path):
    """A folder with a small results table."""
    folder = tmp_path / "results"
    models = ("fcn64-ls2t64-3", "fcn128", "dtw")
    found = [row(dataset, model, accuracy=0.9) for dataset in ("ECG", "LIBRAS") for model in models]
    write(folder / "tsc.csv", found)
    return folder


def test_a_page_is_what_the_library_makes(results, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    shown = done("report", results / "tsc.csv", "--out", out, "--force")
    assert shown == f"saved {out}\n"
    sources = report.read(results / "tsc.csv")
    text = out.read_text(encoding="utf-8")
    assert text == report.page(report.sections(sources), sources, "seq2tens report tsc.csv --out report.html")
    assert str(tmp_path) not in text  # folders of this machine do not concern readers elsewhere
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "results"]


def test_tables_go_into_a_page_of_documentation(results, tmp_path):
    page = tmp_path / "results.md"
    page.write_text(f"# Results\n\n{report.START}\n{report.END}\n\nThe end.\n")
    for _ in range(2):
        assert done("report", results, "--markdown", page) == f"saved {page}\n"
        text = page.read_text()
        assert text.startswith("# Results\n\n<!-- results -->\n\n## Time series classification\n")
        plain = text.replace("\N{NO-BREAK SPACE}", " ")
        assert plain.count("| ECG | 0.900<br>paper 0.892, +0.008 | 0.900<br>paper 0.860, +0.040 |") == 1
        assert text.endswith("<!-- end of results -->\n\nThe end.\n")


def test_parts_are_files_of_their_own(results, tmp_path):
    parts = tmp_path / "deep" / "parts"
    shown = done("report", results, "--parts", parts)
    files = sorted(path.name for path in parts.iterdir())
    assert shown == f"saved {len(files)} files in {parts}\n"
    assert {"tsc-accuracy-fast.csv", "tsc-accuracy-fast.md", "tsc-accuracy-fast.tex"} <= set(files)
    assert "tsc-critical-difference-fast-ours.svg" in files


def test_everything_at_once(results, tmp_path):
    page = tmp_path / "results.md"
    page.write_text(f"{report.START}{report.END}")
    out, parts = tmp_path / "r.html", tmp_path / "parts"
    shown = done("report", results, "--out", out, "--markdown", page, "--parts", parts)
    assert [line.split()[0] for line in shown.splitlines()] == ["saved"] * 3


def test_refusals(results, tmp_path):
    table, out = results / "tsc.csv", tmp_path / "r.html"
    assert refused("report", table) == (
        "at least one of `--out`, `--markdown` and `--parts` must be given, got none"
    )
    missing = tmp_path / "missing.csv"
    assert refused("report", missing, "--out", out) == f"No such file or directory: {missing}"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused("report", empty, "--out", out) == (
        f"{empty} must hold a results table (tsc.csv or mortality.csv or imputation.csv), got none"
    )
    assert refused("report", table, "--out", tmp_path / "no" / "r.html") == (
        f"`--out` must be in an existing folder, got {tmp_path / 'no' / 'r.html'}"
    )
    assert refused("report", table, "--parts", table) == f"`--parts` must be a folder, got the file {table}"
    plain = tmp_path / "plain.md"
    plain.write_text("no marks")
    assert refused("report", table, "--markdown", plain) == (
        f"{plain} must hold the markers <!-- results --> and <!-- end of results -->"
    )
    assert plain.read_text() == "no marks"
    assert not out.exists()


def test_tables_that_are_broken_leave_an_old_report_alone(results, tmp_path):
    table, out = results / "tsc.csv", tmp_path / "r.html"
    out.write_text("old")
    whole = table.read_text()
    header = whole.splitlines()[0]
    for text, message in {
        "": f"{table}, line 1: must have all columns, got none for key, ",
        f"{header}\n": f"{table} must hold at least one finished cell, got none",
        whole.replace(
            ",0.9,", ",often,", 1
        ): f"{table}, line 2: column `accuracy` must be a number, got 'often'",
        whole.replace(",0.9,", ",9,", 1): f"{table}, line 2: `accuracy` must lie in [0, 1], got 9.0",
        whole[:-30]: f"{table}, line 7: must have 18 cells like the header, got ",
    }.items():
        table.write_text(text)
        assert refused("report", table, "--out", out, "--force").startswith(message)
        assert out.read_text() == "old"
    table.write_bytes(b"\xff\xfe\x00")
    assert "must be UTF-8 text" in refused("report", table, "--out", out, "--force")
