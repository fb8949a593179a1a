"""The benchmark of imputers: what is hidden, how it is scored, and that the page shows what was measured."""

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.imputation import data, reporting, rows, running

import house
from seq2tens.data import Sequences

ROOT = house.ROOT
HALF_BLOCKS, THIRD = data.Hide("blocks", 0.5), data.Hide("points", 0.3)


def row(model, fraction, mae, **changes):
    fields = dict.fromkeys(rows.Row._fields[:14], 0) | {"dataset": "physionet", "model": model}
    return rows.Row(**fields | {"fraction": fraction, "mae": mae, "mse": mae**2} | changes)


def test_imputers_are_measured_once_on_the_same_entries(tmp_path, capsys):
    results = tmp_path / "holdout.csv"
    plan = running.Plan(["basicmotions"], ["mean", "linear"], [THIRD], limit=8)
    for _ in range(2):
        running.run(plan, results)
    mean, linear = rows.read(results)
    assert (mean.model, linear.model) == ("mean", "linear")
    assert mean.n_scored == linear.n_scored == round(0.3 * 8 * 6 * data.WINDOW)
    assert 0 < linear.mae < mean.mae
    assert linear.mse < mean.mse
    assert 0 < mean.coverage50 < mean.coverage90 < 1
    assert 0 < linear.width90 < mean.width90
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_an_earlier_row_is_measured_again_to_the_last_digit(tmp_path):
    """What is hidden has not changed since."""
    hidden = data.Hide("points", 0.5)
    (kept,) = (
        found
        for found in rows.read(ROOT / rows.RESULTS)
        if found.cell == rows.Cell("basicmotions", "linear", hidden, 0)
    )
    found = running.measure(data.PROTOCOLS["basicmotions"].load(), kept.cell)
    assert (f"{found.mae:.5g}", f"{found.mse:.5g}") == (f"{kept.mae:.5g}", f"{kept.mse:.5g}")


def test_rows_of_fewer_columns_are_read(tmp_path):
    path = tmp_path / "holdout.csv"
    path.write_text(",".join(rows.Row._fields[:14]) + "\nphysionet,mean,0.1,0,0,0,1,2,3,4,5,6,7,1\n")
    (found,) = rows.read(path)
    assert found.cell == rows.Cell("physionet", "mean", data.Hide("points", 0.1), 0)
    assert np.isnan(found.coverage90)


def test_a_fit_that_met_its_time_limit_is_done_again_with_a_longer_one(tmp_path):
    results = tmp_path / "holdout.csv"
    cut = row("mean", 0.3, 9.0, dataset="basicmotions", limit=8, stopped_after=60)
    rows.append(cut, results)
    running.run(running.Plan(["basicmotions"], ["mean"], [THIRD], limit=8, time_limit=30), results)
    assert [found.mae for found in rows.read(results)] == [9.0]
    running.run(running.Plan(["basicmotions"], ["mean"], [THIRD], limit=8), results)
    (found,) = rows.read(results)
    assert found.mae < 1
    assert found.stopped_after == 0


def test_errors_are_those_of_hidden_entries_in_units_of_the_channel():
    train = np.array([[0.0, 1.0, np.nan], [4.0, 1.0, np.nan]])  # deviations 2, 0 and none
    hidden = np.array([[True, True, True], [False, False, False]])
    score = running.Scores(np.full((2, 3), 4.0), hidden, train)
    cube = np.full((1, 3, 2), 7.0)
    assert score.errors(cube).tolist() == [1.5]
    assert score.interval(cube - 5, cube) == (1.0, 2.5)
    assert score.interval(cube - 1, cube) == (0.0, 0.5)


def test_blocks_hide_all_of_a_stretch_in_neighbouring_channels():
    cube = np.zeros((30, 20, 48))
    given, mask = data.hide(cube, HALF_BLOCKS, np.random.default_rng(0))
    assert (np.isnan(data.by_step(given)) == mask).all()
    assert mask.mean() == pytest.approx(0.5, abs=0.01)
    hidden = mask.reshape(30, 48, 20)
    inner = hidden[:, 6:-6]
    for axis in (1, 2):  # of two neighbours, five in six share a block
        changes = np.diff(inner.astype(int), axis=axis) != 0
        assert changes.mean() < 1 / data.BLOCK
    places = {tuple(np.flatnonzero(np.diff(x.astype(int), axis=0).any(axis=1)) % data.BLOCK) for x in hidden}
    assert len(places) > 10


def test_blocks_of_sequences_go_by_their_times():
    times = np.sort(np.random.default_rng(0).uniform(0, 48, size=400))
    X = Sequences(np.ones((400, 2)), np.array([0, 400]), times)
    _, mask = data.hide(X, HALF_BLOCKS, np.random.default_rng(1))
    for channel in mask.T:
        ends = times[np.flatnonzero(np.diff(channel.astype(int)))]
        assert (np.diff(ends) > data.BLOCK - 1).all()
    assert 0.3 < mask.mean() < 0.7


def test_windows_do_not_overlap():
    values = np.arange(22).reshape(11, 2)
    assert (data.windows(values, 4)[1] == [[8, 10, 12, 14], [9, 11, 13, 15]]).all()
    assert data.windows(values, 4).shape == (2, 2, 4)


@pytest.mark.data("imputation")
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("ett-h1", (213, 7, 48), (72, 7, 48)),
        ("ett-h1-96", (106, 7, 96), (36, 7, 96)),
        ("weather", (658, 21, 48), (219, 21, 48)),
    ],
)
def test_tables_are_split_in_time(name, train, test):
    halves = data.PROTOCOLS[name].load()
    assert (halves.train.shape, halves.test.shape) == (train, test)
    assert np.nanmin(halves.train) > -100
    assert np.isnan(halves.train).any() == (name == "weather")


def test_what_is_hidden_is_named():
    assert data.Hide.parse("blocks:0.5") == HALF_BLOCKS
    with pytest.raises(ValueError, match=r"must be points:X or blocks:X, got 'rows:0\.5'"):
        data.Hide.parse("rows:0.5")


def test_the_tables_say_who_is_best(tmp_path):
    results, page = tmp_path / "holdout.csv", tmp_path / "page.md"
    for each in [
        row("linear", 0.1, 0.75),
        row("gp-vae", 0.1, 0.25, stopped_after=60),
        row("linear", 0.5, 0.5, coverage50=0.5, coverage90=0.875, width90=2.5),
        row("gp-vae", 0.5, 0.625),
        row("mean", 0.3, 0.1),
        row("linear", 0.1, 0.001, limit=5),  # it was cut short
    ]:
        rows.append(each, results)
    page.write_text(f"before\n{reporting.START}\n{reporting.END}\nafter\n")
    reporting.report(results, page, tmp_path)
    text = page.read_text()
    assert "| mean |  | 0.100 |  | 0.0 |\n" in text
    assert "| linear | 0.750 |  | **0.500** | 0.0 |\n| gp-vae | **0.250 †** |  | 0.625 | 0.0 |" in text
    assert "Lowest MAE of 2 columns: gp-vae in 1, linear in 1." in text
    assert "| linear |  |  | 50.0, 87.5; 2.50 |" in text
    assert "gp-vae on physionet, 10% points: 60 s" in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_the_page_shows_what_was_measured(tmp_path):
    page = tmp_path / "accuracy.md"
    page.write_text((ROOT / "docs/accuracy.md").read_text())
    reporting.report(ROOT / rows.RESULTS, page, tmp_path)
    assert page.read_text() == (ROOT / "docs/accuracy.md").read_text()
    for drawn in tmp_path.glob("*.svg"):
        texts = re.compile(r"<text[^>]*>([^<]*)</text>")
        kept = (ROOT / "docs" / "figures" / drawn.name).read_text()
        assert texts.findall(drawn.read_text()) == texts.findall(kept) != [], drawn.name


@pytest.mark.data("../published")
def test_published_figures_are_the_published_ones():
    table = Path(os.environ["SEQ2TENS_DATA"], "..", "published", "imputation_tsi_bench.csv")
    with table.open() as file:
        expected = {(r["pattern"], r["dataset"], r["method"]): float(r["mae"]) for r in csv.DictReader(file)}
    found = {figure[:3]: figure.mae for figure in reporting.published()}
    assert len(found) == 25
    assert found.items() <= expected.items()
