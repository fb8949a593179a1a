"""One table, three formats."""

import csv
import io

from seq2tens.experiments.report.tables import HIGHER, LOWER, Entry, Table, count, signed

TABLE = Table(
    "demo",
    "A & B",
    ("data set", "FCN128", "50%_done"),
    (
        (Entry("ECG"), Entry("0.900 ± 0.010 (2)", 0.9, 0.86, far=0.02), count(3)),
        (Entry("a|b"), Entry("not run", published=0.5), Entry("–")),
    ),
    (Entry("mean"), Entry("0.900", 0.9), count(3)),
    ("A note.",),
)


def test_differences():
    cell = TABLE.rows[0][1]
    assert (cell.change, cell.change_text, cell.published_text) == (0.04, "+0.040", "0.860")
    assert cell.is_far
    assert not Entry("x", 0.88, 0.86, far=0.02).is_far
    assert not Entry("x", 0.5, 0.9).is_far
    assert Entry("x", 0.9).change is None
    assert Entry("x", published=0.9).change is None
    assert Entry("x", 0.90001, 0.9).change_text == "0.000"
    assert [signed(0.0126, 2), signed(-0.0126, 2), signed(-0.0001, 2)] == ["+0.01", "−0.01", "0.00"]


def test_better_is_not_always_more():
    assert Entry("x", 0.9, 0.8, better=HIGHER).verdict == "better"
    assert Entry("x", 0.9, 0.8, better=LOWER).verdict == "worse"
    assert Entry("x", 0.7, 0.8, better=LOWER).verdict == "better"
    assert Entry("x", 0.9, 0.8).verdict == ""
    assert Entry("x", 0.8, 0.8, better=HIGHER).verdict == ""
    assert Entry("x", published=0.8, better=HIGHER).verdict == ""


def test_similar_is_within_the_limit_or_the_published_spread():
    assert Entry("x", 0.82, 0.8, far=0.02).is_similar
    assert not Entry("x", 0.83, 0.8, far=0.02, published_spread=1.0).is_similar
    assert Entry("x", 0.83, 0.8, published_spread=0.03).is_similar
    assert not Entry("x", 0.83, 0.8).is_similar
    assert not Entry("x", published=0.8).is_similar


def test_rows_and_columns_of_what_has_not_been_run():
    idle, run = Entry("not run", published=0.5), Entry("0.9", 0.9)
    table = Table(
        "t",
        "T",
        ("model", "runs", "a", "b"),
        ((Entry("x"), count(1), run, idle), (Entry("y"), count(0), idle, idle)),
    )
    assert table.idle_rows == (False, True)
    assert table.idle_columns == (False, False, False, True)
    assert TABLE.idle_columns == (False, False, False)


def test_markdown():
    assert TABLE.markdown().replace("\N{NO-BREAK SPACE}", "~").splitlines() == [
        "**A & B**",
        "",
        "| data set | FCN128 | 50%_done |",
        "| --- | ---: | ---: |",
        "| ECG | 0.900~±~0.010~(2)<br>paper~0.860,~+0.040 | 3 |",
        r"| a\|b | not~run<br>paper~0.500 | – |",
        "| mean | 0.900 | 3 |",
        "",
        "A note.",
    ]


def test_csv_can_be_computed_with():
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert list(rows[0]) == ["data set", "FCN128", "FCN128, published", "FCN128, difference", "50%_done"]
    assert list(rows[0].values()) == ["ECG", "0.9", "0.860", "0.040", "3"]
    assert list(rows[1].values()) == ["a|b", "not run", "0.500", "", "–"]
    assert rows[2]["data set"] == "mean"


def test_latex():
    lines = TABLE.latex().splitlines()
    assert lines[0] == "% A & B"
    assert lines[1] == r"\begin{tabular}{lrr}"
    assert r"data set & FCN128 & 50\%\_done \\" in lines
    assert r"ECG & 0.900 $\pm$ 0.010 (2) (0.860) & 3 \\" in lines
    assert lines[-1] == r"\end{tabular}"
    assert [line for line in lines if line.startswith("\\") and "rule" in line] == [
        r"\toprule",
        r"\midrule",
        r"\midrule",
        r"\bottomrule",
    ]
