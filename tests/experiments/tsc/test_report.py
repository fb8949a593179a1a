"""What reports say of results: complete, partial, and of one run only."""

import csv
import html
import io
import re
from pathlib import Path

import pytest

from experiments.tsc.results_table import SMALL, partial, row, rows, write
from seq2tens.experiments import report
from seq2tens.experiments.report.blocks import Picture
from seq2tens.experiments.report.tables import Table
from seq2tens.experiments.tsc.models import MODELS
from seq2tens.experiments.tsc.published import ACCURACY
from seq2tens.experiments.tsc.report import section
from seq2tens.experiments.tsc.results import summarize

ROOT = Path(__file__).parents[3]


def told(found, details=True, samples=100):
    """All blocks by name, and all texts."""
    blocks = [
        block for part in section(found, details=details, samples=samples).parts for block in part.blocks
    ]
    named = {block.name: block for block in blocks if isinstance(block, Table | Picture)}
    assert len(named) == sum(not isinstance(block, str) for block in blocks)
    return named, [block for block in blocks if isinstance(block, str)]


def line(table, *names):
    """The cells of a row by column; `names` are the first texts in it."""
    (found,) = [row for row in table.lines if tuple(cell.text for cell in row[: len(names)]) == names]
    return dict(zip(table.header, found, strict=True))


@pytest.fixture(scope="module")
def half_done():
    return told(partial())


def test_accuracies_stand_beside_the_published_ones():
    found = [row("ECG", "fcn128", seed=seed, accuracy=0.88 + seed / 100) for seed in (0, 1, 2)]
    named, _ = told([*found, row("ECG", "random-ls2t", accuracy=0.9)])
    cell = line(named["accuracy-fast"], "ECG")["FCN128"]
    assert (cell.text, cell.published, cell.change_text) == ("0.890 ± 0.010 (3)", 0.86, "+0.030")
    assert cell.is_far
    other = line(named["accuracy-others"], "ECG")["RandomLS2T"]
    assert (other.text, other.published, other.change) == ("0.900", None, None)
    far = line(named["far-off"], "ECG", "FCN128", "fast")["accuracy"]
    assert far == cell


def test_what_has_not_been_run_is_shown_as_such(half_done):
    named, texts = half_done
    fast = named["accuracy-fast"]
    assert len(fast.rows) == 16
    assert fast.header[1:] == tuple(model.label for model in MODELS.values() if model.trained)
    absent = line(fast, "NetFlow")["FCN128"]
    assert (absent.text, absent.value, absent.published) == ("not run", None, 0.970)
    assert all(cell.text == "not run" for cell in list(line(fast, "PEMS").values())[1:])
    assert line(named["progress"], "recipe paper")["runs"].text == "12"
    named, texts = told(rows(models=["dtw"]))
    assert "Nothing has been run yet: recipe fast." in texts
    assert "Nothing has been run yet: recipe paper." in texts
    assert set(named) >= {"accuracy-others", "cost", "cells", "provenance"}


def test_means_compare_the_same_data_sets(half_done):
    mean = line(half_done[0]["accuracy-fast"], "mean (data sets)")["FCN128"]
    assert mean.text.endswith(f"({len(SMALL)})")
    expected = [0.860, 0.990, 0.966, 0.967, 0.987, 1, 1, 1]
    assert mean.published == pytest.approx(sum(expected) / 8)


def test_other_test_sets_are_pointed_out(half_done):
    table = half_done[0]["accuracy-others"]
    assert line(table, "UWave †")["RandomLS2T"].text == "0.986"
    assert any("tested on 361, in the paper 896 and 3582" in note for note in table.notes)


def test_data_that_are_not_surely_the_papers_are_marked():
    table = told([row("CMUsubject16", "dtw"), row("AUSLAN", "dtw"), row("ECG", "dtw")])[0]["accuracy-others"]
    assert line(table, "CMUsubject16 †")["1-NN DTW"].text == "0.900"
    assert line(table, "AUSLAN †")
    assert line(table, "ECG")
    assert any(note.startswith("† CMUsubject16: a reconstruction") for note in table.notes)


def test_our_runs_stand_beside_the_authors_own():
    accuracies = (0.91, 0.89, 0.9, 0.88, 0.87)
    found = [
        row("ECG", "fcn64-ls2t64-3", seed=seed, recipe="paper", accuracy=accuracy, epochs=1000 + seed)
        for seed, accuracy in enumerate(accuracies)
    ]
    masked = row("ECG", "fcn64-ls2t64-3", recipe="paper-masked", accuracy=0.8, lowest_train_loss=None)
    table = told([*found, masked, row("ECG", "fcn128", recipe="fast")])[0]["single-runs"]
    same, other = (line(table, "ECG", "FCN64-LS2T64³", recipe) for recipe in ("paper", "paper-masked"))
    assert len(table.rows) == 2
    assert (same["runs"].text, same["accuracy"].text) == ("5", "0.890 ± 0.016")
    assert same["accuracy"].published == pytest.approx(0.892)
    assert (same["their range"].text, same["inside"].text) == ("0.8700 to 0.9100", "yes")
    assert same["p"].value > 0.9
    assert (same["epochs"].value, same["epochs"].published) == (1002, pytest.approx(1584.8))
    assert (same["lowest loss"].text, same["theirs"].text) == ("4.2e-06", "2.1e-08")
    assert (other["inside"].text, other["p"].value) == ("no", pytest.approx(1 / 6))
    assert other["lowest loss"].text == "–"
    assert "single-runs" not in told([row("ECG", "fcn128", recipe="fast")])[0]


def test_zeros_in_front_and_masks_stand_side_by_side():
    found = [
        row("ECG", "fcn64-ls2t64-3", seed=seed, recipe=recipe, accuracy=accuracy + seed / 100)
        for recipe, accuracy in (("paper", 0.88), ("paper-masked", 0.85))
        for seed in (0, 1)
    ]
    (only,) = told([*found, row("LIBRAS", "fcn128", recipe="paper")])[0]["padding"].rows
    assert [cell.text for cell in only[:2]] == ["ECG", "FCN64-LS2T64³"]
    assert [cell.text for cell in only[2:]] == ["0.885 ± 0.007 (2)", "0.855 ± 0.007 (2)", "+0.030", "0.333"]
    assert (only[2].published, only[3].published) == (0.892, None)
    assert "padding" not in told(found[:2])[0]


def test_the_gain_is_told_by_data_set():
    found = [row("AUSLAN", "fcn64-ls2t64-3", accuracy=0.99), row("AUSLAN", "fcn128", accuracy=0.975)]
    table = told([*found, row("LIBRAS", "fcn128")])[0]["gains"]
    assert table.header == ("data set", "in the paper", "fast")
    assert [cells[0].text for cells in table.rows][:3] == ["ECG", "AUSLAN", "PEMS"]
    assert [cell.text for cell in line(table, "AUSLAN").values()] == ["AUSLAN", "+0.017", "+0.015"]
    assert line(table, "LIBRAS")["fast"].text == "not run"
    assert "gains" not in told(found[:1])[0]


def test_the_claim_is_tested_on_common_data_sets_only():
    found = [
        row("ECG", "fcn64-ls2t64-3", accuracy=0.9),
        row("LIBRAS", "fcn64-ls2t64-3", accuracy=0.1),
        row("ECG", "fcn128", accuracy=0.85),
    ]
    (claimed,) = told(found)[0]["claim"].rows
    assert [cell.text for cell in claimed] == [
        "FCN64-LS2T64³, FCN128",
        "fast",
        "1",
        "0.9000",
        "0.8500",
        "+0.0500",
        "+0.032",
        "45%",
    ]
    _, texts = told(found[:1])
    assert any("has not been tested" in text for text in texts)


def test_ranks_of_ours_and_of_the_paper(half_done):
    named, _ = half_done
    table = named["ranks-fast"]
    first = line(table, "RandomLS2T")
    assert first["among the paper's models"].text == "–"
    ours = [line(table, name)["mean rank"].value for name in ("FCN64-LS2T64³", "1-NN DTW")]
    assert ours[0] < ours[1]
    assert {"critical-difference-fast-ours", "critical-difference-fast-paper"} <= set(named)
    assert len(named["ranks-paper"].rows) == 7  # two networks and five models without a recipe
    assert "JapaneseVowels, LIBRAS, PenDigits" in named["ranks-paper"].notes[0]


def test_results_that_equal_the_papers_have_its_ranks():
    exact = [
        row(dataset, name, accuracy=ACCURACY[dataset][model.published].mean)
        for dataset in SMALL
        for name, model in MODELS.items()
        if model.published
    ]
    named, texts = told(exact)
    for _, rank, among in named["ranks-fast"].rows:
        assert among.change == 0
        assert among.value == rank.value
    assert "No accuracy is off the published mean by more than 0.02." in texts
    assert any("0.000 on average, 0.000 in the median; off by more than 0.02: 0." in text for text in texts)


def test_signed_rank_probabilities_stand_beside_the_papers(half_done):
    named, texts = half_done
    found = line(named["signed-rank-fast"], "FCN64-LS2T64³", "FCN128")
    assert found["data sets"].text == "8"
    assert [found[name].published for name in ("better", "equivalent", "worse")] == [0.451, 0.186, 0.363]
    assert sum(found[name].value for name in ("better", "equivalent", "worse")) == pytest.approx(1)
    assert line(named["signed-rank-fast"], "LS2T64³", "RandomLS2T")["better"].published is None
    assert {"signed-rank-bars-fast", "posterior-fast"} <= set(named)
    assert "No LS2T network has 5 data sets in common with another model yet: recipe paper." in texts


def test_times_and_memory(half_done):
    named, _ = half_done
    cost = line(named["cost"], "FCN128", "fast")
    assert [cell.text for cell in cost.values()] == [
        *("FCN128", "fast", "8", "16", "104.0", "2.0", "1,500", "266,752", "612"),
    ]
    assert line(named["cost"], "1-NN DTW", "-")["epochs"].text == "–"
    assert line(named["seconds-fast"], "ECG")["FCN128"].text == "13.0 + 0.2"
    assert len(named["cells"].rows) == len({(one.dataset, one.model, one.recipe) for one in partial()})


def test_where_numbers_come_from():
    found = [row("ECG", "dtw"), row("LIBRAS", "dtw", commit="abc+"), row("Wafer", "dtw", commit="")]
    table = told(found)[0]["provenance"]
    assert [cells[0].text for cells in table.rows] == ["0d29f27", "abc+", "–"]
    assert table.rows[0][-1].text.startswith("python 3.11")
    assert table.rows[0][2].text == "2026-01-01 12:00:00"


def test_one_run_is_enough():
    named, texts = told([row("ECG", "fcn128")])
    assert "Too little for ranks yet: recipe fast." in texts
    assert line(named["accuracy-fast"], "ECG")["FCN128"].text == "0.900"


def test_unknown_models_and_data_sets_are_shown_too():
    found = [row("ECG", "dtw"), row("Mine", "dtw"), row("Mine", "my-model", accuracy=0.7)]
    table = told(found)[0]["accuracy-others"]
    assert table.header[-1] == "my-model"
    assert line(table, "Mine")["my-model"].text == "0.700"
    assert line(table, "ECG")["my-model"].text == "not run"


def test_equal_accuracies_are_equal_numbers():
    found = [row("ECG", "fcn128", seed=i, accuracy=a) for i, a in enumerate((0.1, 0.2, 0.3))]
    assert summarize(found, "fast").cells["ECG", "fcn128"].accuracy == 0.2


def test_documentation_has_the_tables_that_were_run_and_no_figures(half_done):
    named, texts = told(partial(), details=False)
    assert not any(isinstance(block, Picture) for block in named.values())
    assert named["accuracy-fast"].header[1:] == (
        *("LS2T64³", "FCN64-LS2T64³", "FCN128-LS2T64³", "FCN128", "ResNet"),
    )
    assert "Not run yet: MLSTM-FCN." in texts
    assert named["cost"] == half_done[0]["cost"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return report.read(write(tmp_path_factory.mktemp("results") / "tsc.csv", partial()))


@pytest.fixture(scope="module")
def page(sources):
    return report.page(report.sections(sources, samples=100), sources, "seq2tens report tsc.csv --out r.html")


def test_the_page_is_the_same_each_time_and_needs_nothing_else(sources, page):
    again = report.page(
        report.sections(sources, samples=100), sources, "seq2tens report tsc.csv --out r.html"
    )
    assert again == page
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#|data:)", page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r'<a [^>]*href="#([^"]+)"', page)) <= set(names)


def test_the_page_tells_differences_by_sign_and_meaning(page):
    better, worse = (f' title="{verdict} than published"' for verdict in ("better", "worse"))
    assert re.search(rf'<span class="change better"{better}>▲ \+0\.\d{{3}}</span>', page)
    assert re.search(rf'<span class="change worse"{worse}>▼ −0\.\d{{3}}</span>', page)
    assert re.search(rf'<span class="change worse far"{worse}>▼ −0\.078</span>', page)
    assert re.search(rf'<span class="change better"{better}>▼ −\d\.\d{{2}}</span>', page)  # ranks
    assert '<span class="change">=</span>' in page


def test_the_contents_name_the_experiment(page):
    contents = page[page.index("<nav") : page.index("</nav>")]
    assert '<h2><a href="#tsc">Time series classification</a></h2>' in contents
    assert '<a href="#tsc-ranks">Ranks</a>' in contents


def test_the_page_names_its_sources_without_their_folders(page):
    assert "(156 runs)" in page
    assert "seq2tens report tsc.csv --out r.html" in page


def test_names_are_escaped(tmp_path):
    nasty = "<script>alert(1)</script>&\"'$x_{"
    found = [row(nasty, "dtw"), row("ECG", nasty), row("ECG", "dtw", commit=nasty, versions=nasty)]
    found_sources = report.read(write(tmp_path / "tsc.csv", found))
    text = report.page(report.sections(found_sources), found_sources, nasty)
    assert "<script>alert" not in text
    assert html.escape(nasty) in text
    assert "alert(1)" in report.markdown(found_sources)


def test_markdown_goes_between_the_marks(sources):
    tables = report.markdown(sources)
    plain = tables.replace("\N{NO-BREAK SPACE}", " ")
    assert "| ECG | 0.822 ± 0.004 (2)<br>paper 0.824, −0.002 |" in plain
    text = report.between_marks(f"before {report.START} old {report.END} after", tables, "page.md")
    assert text == f"before {report.START}\n\n{tables}\n\n{report.END} after"
    assert report.between_marks(text, tables, "page.md") == text
    with pytest.raises(ValueError, match=r"page.md must hold the markers <!-- results --> and <!-- end"):
        report.between_marks(f"{report.END} {report.START}", tables, "page.md")


def test_every_table_and_figure_is_a_file(sources):
    sections = report.sections(sources, samples=100)
    files = report.files(sections)
    blocks = [block for part in sections[0].parts for block in part.blocks if not isinstance(block, str)]
    tables = [block for block in blocks if isinstance(block, Table)]
    assert len(files) == 3 * len(tables) + (len(blocks) - len(tables))
    found = list(csv.DictReader(io.StringIO(files["tsc-accuracy-fast.csv"])))
    assert found[0]["data set"] == "ArabicDigits"
    assert found[-1]["FCN128, published"] == "0.971"
    assert files["tsc-critical-difference-fast-ours.svg"].startswith("<svg ")
    assert r"\begin{tabular}" in files["tsc-cost.tex"]


def test_tables_are_found_in_a_folder_and_known_by_columns(tmp_path):
    table = write(tmp_path / "tsc.csv", [row("ECG", "dtw")])
    (tmp_path / "notes.csv").write_text("a,b\n")
    (source,) = report.read(tmp_path)
    assert source.path == table
    other = tmp_path / "mine.csv"
    other.write_text(table.read_text())
    assert report.read(other)[0].rows == source.rows


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tsc.csv", "", "line 1: must have all columns"),
        ("tsc.csv", "a,b\n1,2\n", "line 1: must have known columns only, got also a, b"),
        (
            "mine.csv",
            "a,b\n1,2\n",
            "must be named after an experiment (tsc, mortality, imputation) or have the columns of its "
            "table, got a, b",
        ),
        ("mine.csv", "", "got no columns"),
        (
            "notes.txt",
            None,
            "must hold a results table (tsc.csv or mortality.csv or imputation.csv), got none",
        ),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        report.read(path if text is not None else tmp_path)


def test_a_table_without_cells(tmp_path):
    path = write(tmp_path / "tsc.csv", [row("ECG", "dtw")])
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(ValueError, match=r"tsc.csv must hold at least one finished cell, got none"):
        report.read(path)


def test_the_page_of_results_is_what_was_measured():
    page, results = ROOT / "docs" / "results.md", ROOT / "results"
    text = page.read_text()
    if not (results / "tsc.csv").exists():
        assert report.between_marks(text, "Nothing has been run yet.", page) == text
    else:
        assert report.between_marks(text, report.markdown(report.read(results)), page) == text
