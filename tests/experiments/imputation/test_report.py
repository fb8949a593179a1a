"""What a report says of the imputation experiment."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imsave

from experiments.imputation.imputation_rows import row
from experiments.mortality.mortality_rows import row as mortality_row
from seq2tens._checks import ArgumentError
from seq2tens.experiments import report
from seq2tens.experiments.imputation import files as cell_paths
from seq2tens.experiments.imputation.files import cell_files, write_calibration, write_curve
from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.published import SCORES
from seq2tens.experiments.imputation.report import section
from seq2tens.experiments.imputation.table import TABLE
from seq2tens.experiments.mortality import table as mortality_table
from seq2tens.experiments.report.blocks import Picture
from seq2tens.experiments.report.tables import Table


def told(rows, **options):
    """All tables and pictures by name, and all texts."""
    blocks = [block for part in section(rows, **options).parts for block in part.blocks]
    named = {block.name: block for block in blocks if isinstance(block, Table | Picture)}
    return named, [block for block in blocks if isinstance(block, str)]


def line(table, name):
    (found,) = [cells for cells in table.lines if cells[0].text == name]
    return dict(zip(table.header, found, strict=True))


def keep(folder, finished, epochs=2):
    """Files that a cell leaves beside its table."""
    files = cell_files(folder, finished.key)
    history = [
        {"epoch": i, "train_loss": 9.0 - i, "validation_nll": 0.6 / i, "validation_mse": 0.2, "seconds": 5.0}
        for i in range(1, epochs + 1)
    ]
    write_curve(files.curve, history, "validation_mse")
    write_calibration(files.calibration, [(0.25, 0.3, 100), (0.75, 0.7, 50)])
    files.picture.parent.mkdir(parents=True, exist_ok=True)
    imsave(files.picture, np.random.default_rng(0).random((18, 16, 3)))


@pytest.mark.data("../published")
def test_published_numbers_are_those_on_file(on_file):
    expected = {
        (row["model"], row["dataset"].lower(), row["metric"].lower()): (float(row["mean"]), float(row["std"]))
        for row in on_file("imputation.csv")
    }
    ours = {
        (label, dataset, name): (score.mean, score.std)
        for label, sets in SCORES.items()
        for dataset, scores in sets.items()
        for name, score in scores.items()
        if dataset != "sprites-conv256"  # of the appendix
    }
    assert ours == expected
    assert {MODELS[name].label for name in SETTINGS["physionet"].models} == SCORES.keys()


def test_ours_stand_beside_the_published_ones():
    named, texts = told([row(seed=seed, nll=0.35 + seed / 100) for seed in (0, 1, 2)])
    ours = line(named["hmnist-scores"], "GP-VAE")
    cell = ours["NLL"]
    assert (cell.text, cell.published_label, cell.change_text) == ("0.360 ± 0.010", "0.350 ± 0.007", "+0.010")
    assert (ours["runs"].text, ours["epochs"].text) == ("3", "20")
    assert ours["MSE, not rounded"].published is None
    assert "3 runs are finished, 0 others were cut short" in texts[0]
    assert "paper\N{NO-BREAK SPACE}0.350" in named["hmnist-scores"].markdown()


def test_what_has_not_been_run_is_shown_as_such():
    named, _ = told([row("physionet"), row("physionet", "mean", auroc=0.66)])
    table = named["physionet-scores"]
    paper = [MODELS[name].label for name in SETTINGS["physionet"].models]
    assert [cells[0].text for cells in table.rows] == paper
    missing = line(table, "BRITS")
    assert (missing["AUROC"].text, missing["AUROC"].published_label) == ("not run", "0.742 ± 0.008")
    assert line(table, "Mean imputation")["epochs"].text == "–"
    assert "hmnist-scores" not in named
    assert len(told([row("sprites")])[0]["sprites-scores"].rows) == 6
    ours = told([row("sprites", "gp-vae-bls2t-wide")])[0]["sprites-scores"]
    assert [cells[0].text for cells in ours.rows][6:] == ["GP-VAE (B-LS2T, twice as wide; ours)"]


@pytest.mark.parametrize("short", [{"epochs": 5}, {"limit": 500}])
def test_a_run_that_was_cut_short_is_not_taken_for_a_full_one(short):
    named, texts = told([row(**short, nll=0.5)])
    assert line(named["hmnist-scores"], "GP-VAE")["NLL"].text == "not run"
    found = line(named["hmnist-short"], "GP-VAE")
    assert (found["NLL"].text, found["NLL"].published) == ("0.500", None)
    assert found["training sequences"].text == ("500" if "limit" in short else "50,000")
    assert "0 runs are finished, 1 others were cut short" in texts[0]


def test_the_claim_compares_what_was_trained_alike():
    pair = [row(), row(model="gp-vae-bls2t", nll=0.26, mse=0.1, auroc=0.96)]
    _, texts = told(pair)
    (claim,) = [text for text in texts if "GP-VAE (B-LS2T) less GP-VAE" in text]
    assert claim.startswith("Healing MNIST, 20 epochs: ")
    assert "(1 and 1 runs)" in claim
    assert "NLL −0.100 (in the paper −0.099), MSE −0.020 (in the paper −0.022)" in claim
    _, alone = told([row(), row(model="gp-vae-bls2t", epochs=5)])
    assert not [text for text in alone if "less GP-VAE" in text]


def test_models_are_compared_in_the_same_orders():
    """By the mean of their runs, order by order."""
    rows = [
        row("physionet", auroc_orders="0.70 0.72 0.74"),
        row("physionet", model="gp-vae-bls2t", auroc_orders="0.71 0.72 0.75"),
        row("physionet", model="gp-vae-bls2t", seed=1, auroc_orders="0.73 0.72 0.77"),
        row("physionet", "mean", auroc_orders="0.69 0.70 0.72"),
    ]
    named, texts = told(rows)
    found = line(named["physionet-paired"], "GP-VAE (B-LS2T)")
    assert (found["runs"].text, found["difference"].text) == ("2", "+0.013 ± 0.012")
    assert found["above 0"].text == "2 of 3"
    assert line(named["physionet-paired"], "Mean imputation")["difference"].text == "−0.017 ± 0.006"
    (claim,) = [text for text in texts if "GP-VAE (B-LS2T) less GP-VAE" in text]
    assert "In 3 random orders of the stays, the same for both, the difference of AUROC is +0.013" in claim
    assert "physionet-paired" not in told(rows[1:])[0]  # nothing to compare with


def test_rows_of_an_earlier_protocol_are_told_apart(tmp_path):
    before = replace(row("physionet", auroc=0.681), protocol="", auroc_orders="", key="cf113bd1684e")
    named, texts = told([before, row("physionet", "mean")])
    assert line(named["physionet-scores"], "GP-VAE")["AUROC"].text == "not run"
    assert [cell.text for cell in named["earlier"].rows[0]][1:4] == ["gp-vae", "1", "40 epochs"]
    assert "1 are of an earlier protocol" in texts[0]
    assert "earlier" not in told([row()])[0]


def test_curves_and_pictures_of_the_longest_runs(tmp_path):
    rows = [row(epochs=1), row(epochs=2), row(model="gp-vae-bls2t", epochs=3), row(model="mean")]
    keep(tmp_path, rows[0], epochs=1)
    keep(tmp_path, rows[1])
    keep(tmp_path, rows[2], epochs=3)
    named, _ = told(rows, folder=tmp_path)
    table = named["hmnist-curve-table"]
    assert table.header == ("epoch", "GP-VAE, 2 epochs", "GP-VAE (B-LS2T), 3 epochs")
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["1", "0.600", "0.600"],
        ["2", "0.300", "0.300"],
        ["3", "–", "0.200"],
    ]
    pictures = [name for name, block in named.items() if isinstance(block, Picture)]
    assert pictures == [
        *("hmnist-curve", "hmnist-calibration", "hmnist-frames-gp-vae", "hmnist-frames-gp-vae-bls2t")
    ]
    axes = named["hmnist-calibration"].figure.axes[0]
    assert axes.lines[1].get_xdata().tolist() == [0.25, 0.75]
    assert axes.lines[1].get_ydata().tolist() == [0.3, 0.7]
    brief, _ = told(rows, folder=tmp_path, details=False)
    assert "hmnist-curve-table" in brief
    assert not [block for block in brief.values() if isinstance(block, Picture)]


def test_files_that_are_not_there_are_left_out(tmp_path):
    named, _ = told([row()], folder=tmp_path)
    assert set(named) == {"hmnist-scores", "cost", "provenance"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"epoch,train_loss\n1,0.5\n2,half\n", "line 3: must have numbers or empty cells, .*'half'"),
        (b"epoch,train_loss\n1\n", "line 2: must have 2 cells like the header, got 1"),
        (b"epoch,train_loss\n1,\xff\n", "byte 19: must be UTF-8 text, got invalid start byte"),
        (b'epoch,train_loss\n1,"2', "line 2: unexpected end of data"),
    ],
)
def test_damaged_curves(content, sentence, tmp_path):
    (tmp_path / "curve.csv").write_bytes(content)
    with pytest.raises(ArgumentError, match=f"^{tmp_path / 'curve.csv'}, {sentence}"):
        cell_paths.read(tmp_path / "curve.csv")


def test_curves_without_some_of_their_numbers(tmp_path):
    (tmp_path / "curve.csv").write_text("epoch,train_loss,validation_mse\n1,0.5,\n2,0.25,0.1\n")
    assert cell_paths.read(tmp_path / "curve.csv") == {"epoch": [1, 2], "train_loss": [0.5, 0.25]}
    (tmp_path / "curve.csv").write_text("epoch,train_loss\n")
    assert cell_paths.read(tmp_path / "curve.csv") == {}


def test_experiments_make_one_report(tmp_path):
    finished = row()
    keep(tmp_path, finished)
    TABLE.append(tmp_path / "imputation.csv", finished)
    cell = mortality_table.MortalityCell("mortality", "fcn", "published", 0)
    mortality_table.TABLE.append(tmp_path / "mortality.csv", mortality_row(cell))
    sources = report.read(tmp_path)
    sections = report.sections(sources)
    assert [part.title for part in sections] == ["Mortality prediction", "Imputation"]
    page = report.page(sections, sources, "seq2tens report")
    assert page.count('href="data:image/png;base64,') == 1
    assert 'id="imputation-hmnist-calibration"' in page
    assert "http" not in page.partition('id="imputation"')[2].replace("http://www.w3.org", "")
    assert "## Imputation" in report.markdown(sources)
    assert "imputation-hmnist-frames-gp-vae.svg" in report.files(sections)
    other = tmp_path / "mine.csv"
    other.write_text((tmp_path / "imputation.csv").read_text())
    assert report.read(other)[0].rows == [finished]
