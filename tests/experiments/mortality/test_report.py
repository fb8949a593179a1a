"""What a report says of the mortality experiment."""

import csv
import io

import pytest

from experiments.mortality.mortality_rows import row
from experiments.tsc.results_table import row as tsc_row
from experiments.tsc.results_table import write
from seq2tens.experiments import report
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.published import RUNS, SCORES
from seq2tens.experiments.mortality.report import section
from seq2tens.experiments.mortality.table import TABLE, MortalityCell
from seq2tens.experiments.mortality.tuning import trials
from seq2tens.experiments.report.statistics import permutation_test
from seq2tens.experiments.report.tables import Table


def final(model="fcn-ls2t", settings="published", seed=0, epochs=200, recipe="paper", split=0, **others):
    cell = MortalityCell("mortality", model, settings, seed, "final", epochs, recipe, split)
    return row(cell, **others)


def told(rows, details=True):
    """All tables by name, and all texts."""
    blocks = [block for part in section(rows, details=details).parts for block in part.blocks]
    named = {block.name: block for block in blocks if isinstance(block, Table)}
    return named, [block for block in blocks if isinstance(block, str)]


def line(table, *names):
    (found,) = [row for row in table.lines if tuple(cell.text for cell in row[: len(names)]) == names]
    return dict(zip(table.header, found, strict=True))


@pytest.mark.data("../published")
def test_published_numbers_are_those_on_file(on_file):
    rows = {row["model"]: row for row in on_file("mortality_physionet2012.csv")}
    assert rows.keys() == SCORES.keys() == {model.label for model in MODELS.values()}
    for label, scores in SCORES.items():
        for name, score in scores.items():
            assert score.mean == pytest.approx(float(rows[label][name]) / 100)
            assert score.std == pytest.approx(float(rows[label][f"{name}_std"]) / 100)


def test_ours_stand_beside_the_published_ones():
    rows = [final(seed=seed, test_auprc=0.52 + seed / 100, epochs=200) for seed in (0, 1, 2)]
    named, texts = told(rows)
    ours = line(named["scores"], "FCN-LS2T", "published")
    cell = ours["AUPRC"]
    assert (cell.text, cell.published_label, cell.change_text) == (
        *("0.530 ± 0.010", "0.539 ± 0.005", "−0.009"),
    )
    assert ours["runs"].text == "3"
    assert ours["epochs"].text == "71, best 21"
    assert "3 final runs of 1 of 9 models are finished (in the paper 5 of each)" in texts[0]
    assert "7,671 / 1,917 / 2,400" in texts[1]
    assert (
        "paper\N{NO-BREAK SPACE}0.539\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.005" in named["scores"].markdown()
    )
    assert r"(0.539 $\pm$ 0.005)" in named["scores"].latex()
    numbers = next(csv.DictReader(io.StringIO(named["scores"].csv())))
    assert numbers["AUPRC, published"] == "0.539"
    assert line(named["runs"], "FCN-LS2T", "published", "paper", "0", "2")["test AUPRC"].text == "0.540"


def test_what_has_not_been_run_is_shown_as_such():
    named, texts = told([final()])
    assert len(named["scores"].rows) == len(MODELS)
    missing = line(named["scores"], "GRU-D", "–")
    assert missing["AUROC"].text == "not run"
    assert missing["AUROC"].published_label == "0.863 ± 0.003"
    assert missing["runs"].text == "0"
    assert "FCN-LS2T and FCN have not both been run with the published settings by `paper` yet." in texts
    assert line(named["scores"], "FCN-LS2T", "published")["AUPRC"].text == "0.530"  # one run has no spread


def test_the_claim_compares_the_published_settings():
    _, texts = told([final(test_auprc=0.54), final("fcn", test_auprc=0.52)])
    (claim,) = [text for text in texts if text.startswith("FCN-LS2T less FCN")]
    assert "(1 and 1 runs)" in claim
    assert "AUPRC +0.020 (in the paper +0.011)" in claim


def test_runs_by_other_recipes_and_on_other_splits_are_kept_apart():
    rows = [final(test_auprc=0.54), final(recipe="paper-masked", test_auprc=0.56)]
    rows += [final(split=split, test_auprc=0.1) for split in (1, 2)]
    named, _ = told(rows)
    assert line(named["scores"], "FCN-LS2T", "published", "paper")["AUPRC"].text == "0.540"
    masked = line(named["scores"], "FCN-LS2T", "published", "paper-masked")
    assert masked["AUPRC"].text == "0.560"
    assert masked["accuracy, threshold chosen"].text == "0.860"
    assert len([row for row in named["scores"].rows if row[0].text == "FCN-LS2T"]) == 2


@pytest.mark.data("../published")
def test_the_authors_runs_are_those_on_file(on_file):
    for stored in on_file("mortality_runs.csv"):
        (name,) = [name for name, model in MODELS.items() if model.label == stored["model"]]
        theirs = RUNS[name]
        assert theirs.accuracies == tuple(map(float, stored["accuracy"].split(";")))
        for measure in ("auprc", "auroc"):
            bounds = float(stored[f"{measure}_low"]), float(stored[f"{measure}_high"])
            assert getattr(theirs, measure) == bounds
        for column in ("epochs", "best_epochs"):
            wanted = tuple(map(int, stored[column].split("-"))) if stored[column] else None
            assert getattr(theirs, column) == wanted


def test_our_runs_stand_beside_the_authors():
    rows = [
        final(seed=seed, test_accuracy=0.841 + seed / 1000, test_auprc=0.56, test_auroc=0.8605)
        for seed in range(3)
    ]
    rows += [final(epochs=3), final(split=1), final("gru-d", "default")]
    named, _ = told(rows)
    assert len(named["single-runs"].rows) == 1
    ours = line(named["single-runs"], "FCN-LS2T", "paper")
    assert ours["runs"].text == "3"
    assert ours["accuracy"].text == "0.842 ± 0.001 *"
    assert ours["p"].value == pytest.approx(
        permutation_test([0.841, 0.842, 0.843], RUNS["fcn-ls2t"].accuracies)
    )
    assert (ours["AUPRC"].text, ours["AUPRC, their range"].text) == ("0.560 ± 0.000", "0.533 to 0.545")
    assert ours["AUROC"].text.endswith("*")
    assert (ours["epochs"].text, ours["best epochs"].text) == (
        "71 to 71 / 170 to 214",
        "21 to 21 / 119 to 163",
    )
    assert "single-runs" not in told([final("gru-d", "default")])[0]


def test_later_splits_are_a_table_of_their_own():
    rows = [final(split=split, test_auroc=0.85 + split / 100) for split in (1, 2, 3)]
    named, _ = told([*rows, final(), final(split=4, epochs=2)])
    ours = line(named["later"], "FCN-LS2T")
    assert (ours["splits"].text, ours["AUROC"].text) == ("3", "0.870 ± 0.010")
    assert line(named["later"], "MTM")["AUPRC"].text == "0.586 ± 0.041"
    assert line(named["later"], "Raindrop")["AUROC"].text == "0.828"
    assert "later" not in told([final()])[0]


def test_a_run_that_was_cut_short_is_not_taken_for_a_full_one():
    named, texts = told([final(epochs=3, test_auprc=0.1), final("gru-d", "default")])
    assert line(named["scores"], "FCN-LS2T", "–")["AUPRC"].text == "not run"
    short = line(named["short"], "FCN-LS2T", "published")
    assert (short["limit of epochs"].text, short["AUPRC"].text, short["AUPRC"].published) == (
        "3",
        "0.100",
        None,
    )
    assert "1 other runs were cut short" in texts[0]


def test_settings_that_were_searched():
    cells = trials(["fcn"], None, n_trials=3)
    rows = [row(cell, validation_auprc=0.4 + i / 100) for i, cell in enumerate(cells)]
    rows.append(final("fcn", cells[2].settings))
    named, texts = told(rows)
    assert f"FCN, paper: 3 trials (in the paper 20); the best is `{cells[2].settings}`." in texts
    table = named["trials-fcn-paper-200"]
    assert [cells[0].text for cells in table.rows] == [cell.settings for cell in reversed(cells)]
    assert line(named["scores"], "FCN", "found by search")["runs"].text == "1"
    brief, _ = told(rows, details=False)
    assert "trials-fcn-paper-200" not in brief
    assert "runs" not in brief


def test_trials_alone_make_a_report():
    (cell,) = trials(["seft"], None, n_trials=1)
    named, _ = told([row(cell)])
    assert {row[5].text for row in named["scores"].rows} == {"not run"}


def test_both_experiments_make_one_report(tmp_path):
    write(tmp_path / "tsc.csv", [tsc_row("ECG", "dtw")])
    for one in (final(), final("fcn")):
        TABLE.append(tmp_path / "mortality.csv", one)
    sources = report.read(tmp_path)
    sections = report.sections(sources, samples=50)
    assert [part.title for part in sections] == ["Time series classification", "Mortality prediction"]
    page = report.page(sections, sources, "seq2tens report")
    assert page.count("<h2") == 4  # in the contents and in the body
    assert "paper 0.539 ± 0.005" in page
    assert "## Mortality prediction" in report.markdown(sources)
    assert "mortality-scores.tex" in report.files(sections)
    other = tmp_path / "mine.csv"
    other.write_text((tmp_path / "mortality.csv").read_text())
    assert report.read(other)[0].rows == sources[1].rows
