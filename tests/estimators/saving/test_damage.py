"""Single bits of saved models that flip: the predictions are the same, or there is one error."""

import shutil

import numpy as np
import pytest

from estimators.saved_models import FIXTURES, MODELS, said
from seq2tens._checks import ArgumentError
from seq2tens.estimators import load

FILES = ("model.json", "model.safetensors")


def bits(folder):
    """All of them: file, byte, bit."""
    return [(name, i, b) for name in FILES for i in range((folder / name).stat().st_size) for b in range(8)]


def flip(folder, bit):
    """In place: a file that is written anew is forced to disk by some systems."""
    name, place, number = bit
    with (folder / name).open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << number]))


def load_with_flipped(folder, bit):
    """The model, or the sentence that refuses it; the file is put back."""
    flip(folder, bit)
    try:
        return load(folder)
    except ArgumentError as error:
        return str(error)
    finally:
        flip(folder, bit)


def check(folder, chosen):
    """None of these bits changes what the model says."""
    expected = said(load(folder))
    for bit in chosen:
        found = load_with_flipped(folder, bit)
        if isinstance(found, str):
            assert f"{folder}/model." in found
        else:
            np.testing.assert_array_equal(said(found), expected)
    np.testing.assert_array_equal(said(load(folder)), expected)


@pytest.fixture
def folder(tmp_path):
    """Saves a model of that name by this version."""

    def save(name):
        load(FIXTURES / "format-1" / name).save(tmp_path / "model", notes={"a": 0.1})
        return tmp_path / "model"

    return save


@pytest.mark.parametrize("name", ["FCNLS2TClassifier", "RandomLS2TClassifier", "LinearImputer"])
def test_some_bits(name, folder):
    saved = folder(name)
    every = bits(saved)
    document = sum(bit[0] == FILES[0] for bit in every)
    rng = np.random.default_rng(0)
    chosen = [*rng.choice(document, 200, replace=False), *rng.integers(document, len(every), 100)]
    check(saved, [every[i] for i in chosen])


@pytest.mark.parametrize(
    "name", ["Seq2TensFeatures", pytest.param("DeepLS2TClassifier", marks=pytest.mark.slow)]
)
def test_every_bit(name, folder):
    saved = folder(name)
    check(saved, bits(saved))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_format_1_are_loaded_or_refused(name, tmp_path):
    """Their documents have no digest: not every change can be told, but none is an error of another kind."""
    saved = shutil.copytree(FIXTURES / "format-1" / name, tmp_path / "model")
    every = [bit for bit in bits(saved) if bit[0] == FILES[0]]
    chosen = np.random.default_rng(0).integers(len(every), size=150)
    refusals = [found for i in chosen if isinstance(found := load_with_flipped(saved, every[i]), str)]
    assert refusals
    assert all(str(saved) in refusal for refusal in refusals)
