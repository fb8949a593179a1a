"""Cells and grids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2tens.experiments import MODELS, Cell, grid
from seq2tens.experiments.tsc import EXPERIMENT
from seq2tens.experiments.tsc.table import NO_RECIPE, RECIPES

CELLS = st.builds(
    Cell,
    experiment=st.just("tsc"),
    dataset=st.sampled_from(EXPERIMENT.datasets),
    model=st.sampled_from(EXPERIMENT.models),
    seed=st.integers(0, 100),
    recipe=st.sampled_from((*RECIPES, NO_RECIPE)),
)


def test_keys_never_change():
    """Tables on file depend on them."""
    assert Cell("tsc", "LIBRAS", "random-ls2t", 0, "-").key == "5c8424f7a33c"
    assert Cell("tsc", "PenDigits", "fcn64-ls2t64-3", 4, "paper").key == "1bcb71b7979d"


@given(CELLS, CELLS)
def test_a_key_belongs_to_one_cell(one, other):
    assert (one.key == other.key) == (one == other)
    assert Cell.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_cells_are_named_for_people():
    assert str(Cell("tsc", "ECG", "dtw", 0, "-")) == "ECG dtw (seed 0)"
    assert str(Cell("tsc", "ECG", "fcn128", 2, "paper")) == "ECG fcn128 (seed 2, paper)"


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"colour": "red"}, ValueError, r"`cell` must only have the keys .* got also \['colour'\]"),
        ({"seed": "0"}, TypeError, "`seed` must be an integer, got str"),
        ({"seed": True}, TypeError, "`seed` must be an integer, got bool"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"dataset": 3}, TypeError, "`dataset` must be a string, got int"),
        ({"recipe": "slow"}, ValueError, "`recipe` must be one of 'fast', 'paper', 'paper-masked', '-', got"),
    ],
)
def test_what_is_no_cell(change, kind, sentence):
    data = Cell("tsc", "ECG", "dtw", 0, "-").to_dict()
    with pytest.raises(kind, match=sentence):
        Cell.from_dict(data | change)


def test_a_missing_key():
    with pytest.raises(ValueError, match=r"`cell` must have the keys .* got none for \['recipe'\]"):
        Cell.from_dict({"experiment": "tsc", "dataset": "ECG", "model": "dtw", "seed": 0})


def test_a_grid_is_filled_seed_by_seed(monkeypatch):
    monkeypatch.setenv("SEQ2TENS_DATA", "/no/such/folder")  # declaring touches no files
    found = grid("tsc", ["ECG", "Wafer"], ["fcn128", "dtw"], seeds=2, recipe="paper")
    assert [(cell.dataset, cell.model, cell.seed, cell.recipe) for cell in found] == [
        ("ECG", "fcn128", 0, "paper"),
        ("ECG", "dtw", 0, "-"),
        ("Wafer", "fcn128", 0, "paper"),
        ("Wafer", "dtw", 0, "-"),
        ("ECG", "fcn128", 1, "paper"),
        ("Wafer", "fcn128", 1, "paper"),
    ]


def test_the_whole_grid():
    cells = grid("tsc", EXPERIMENT.datasets, EXPERIMENT.models)
    seeded = sum(model.seeded for model in MODELS.values())
    assert len(set(cells)) == len(cells) == 16 * (5 * seeded + len(MODELS) - seeded)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"models": ["lstm"]}, "`models` must be one of 'ls2t64-3', .* got 'lstm'"),
        ({"recipe": "-"}, "`recipe` must be one of 'fast', 'paper', 'paper-masked', got '-'"),
        ({"seeds": 0}, "`seeds` must be at least 1, got 0"),
    ],
)
def test_what_is_no_grid(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        grid("tsc", ["ECG"], **{"models": ["dtw"], **options})
