"""`seq2tens info`."""

import numpy as np

import seq2tens
from cli.shell import done, refused, table


def test_installation():
    shown = done("info")
    assert f"seq2tens           {seq2tens.__version__} " in shown
    assert "backend reference  ready " in shown
    for word in ("torch", "aeon", "fcn-ls2t", "JapaneseVowels", "CPU"):
        assert word in shown


def test_model(model):
    shown = done("info", model)
    assert "FCNLS2TClassifier" in shown
    assert "fast, waves, slow" in shown
    assert "12 sequences" in shown
    assert "width=4" in shown
    assert "x, y" in shown


def test_data(tmp_path, train):
    shown = done("info", train)
    assert "sequences  12 " in shown
    assert "2 (x, y)" in shown
    assert "fast, waves (6), slow (6)" in shown
    assert "0.00%" not in shown
    bare = done("info", table(tmp_path / "x.csv", labels=False))
    assert "no labels" in bare
    assert refused("info", train, "--label-column", "who").startswith(f"{train}: must have a column `who`")


def test_both_halves(tmp_path):
    shown = done("info", "JapaneseVowels")
    assert shown.index("train") < shown.index("270") < shown.index("test") < shown.index("370")
    arrays = {
        "X": np.zeros((3, 1)),
        "offsets": np.arange(4),
        "y": np.zeros(3, int),
        "classes": np.array(["a"]),
    }
    np.savez(tmp_path / "x.npz", **arrays, n_train=3)
    assert "sequences  0" in done("info", tmp_path / "x.npz")
    assert refused("evaluate", tmp_path, tmp_path / "x.npz").startswith("`DIR` must be")
