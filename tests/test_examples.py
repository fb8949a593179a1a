"""The scripts in `examples` run, in short, and cite what was published."""

import csv
import importlib.util
import os
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def japanese_vowels():
    spec = importlib.util.spec_from_file_location("japanese_vowels", ROOT / "examples" / "japanese_vowels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_learns_and_draws(japanese_vowels, tmp_path, capsys):
    folder = tmp_path / "pictures"
    accuracy = japanese_vowels.main(folder, epochs=3, width=16, fcn_width=16, progress="silent")
    assert accuracy > 0.7
    assert sorted(path.name for path in folder.iterdir()) == ["confusion_matrix.png", "learning_curves.png"]
    shown = capsys.readouterr().out
    assert f"{accuracy:.3f}" in shown
    assert "this run" in shown
    assert all(f"{value:.3f}" in shown for value in japanese_vowels.PUBLISHED.values())


def test_the_figure_of_a_page_is_drawn_by_its_code(tmp_path):
    before = Path.cwd()
    names = runpy.run_path(str(ROOT / "examples" / "universality.py"))["main"](tmp_path / "figures")
    assert (tmp_path / "figures" / "universality.svg").stat().st_size > 1000
    assert len(names["errors"]) == 12
    assert Path.cwd() == before


@pytest.mark.data("../published")
def test_the_demo_cites_the_published_numbers(japanese_vowels):
    table = Path(os.environ["SEQ2TENS_DATA"], "..", "published", "tsc_accuracy.csv")
    with table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "JapaneseVowels"]
    published = sorted(float(row["mean_accuracy"]) for row in rows)
    assert sorted(japanese_vowels.PUBLISHED.values()) == published
