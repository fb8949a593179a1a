"""Folders of saved models as huggingface_hub pushes and pulls them; nothing goes over a network."""

import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import ModelCard, snapshot_download

from estimator_contract import problem
from estimators.saved_models import FIXTURES, said
from seq2tens._checks import ArgumentError
from seq2tens.estimators import DeepLS2TClassifier, FCNClassifier, MeanImputer, RandomLS2TClassifier, load

REVISION = "0" * 40


def in_cache(folder, cache, repository="someone/model"):
    """Put a folder where a download would have put it: files are links to blobs."""
    home = cache / f"models--{repository.replace('/', '--')}"
    snapshot, blobs = home / "snapshots" / REVISION, home / "blobs"
    for place in (snapshot, blobs, home / "refs"):
        place.mkdir(parents=True)
    for file in folder.iterdir():
        shutil.copy(file, blobs / file.name)
        (snapshot / file.name).symlink_to(blobs / file.name)
    (home / "refs" / "main").write_text(REVISION)


@pytest.fixture
def fitted():
    X, y = problem(n=12)
    frames = [pd.DataFrame(x.T, columns=["speed", "a `tick`"]) for x in X]
    return RandomLS2TClassifier(n_blocks=2, random_state=0).fit(frames, y)


def test_a_repository_is_pulled_and_says_the_same(fitted, tmp_path):
    X, _ = problem(n=8, seed=4)
    fitted.save_pretrained(tmp_path / "model")
    in_cache(tmp_path / "model", tmp_path / "cache")
    options = {"cache_dir": tmp_path / "cache", "local_files_only": True}
    again = RandomLS2TClassifier.from_pretrained("someone/model", **options)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert load(snapshot_download("someone/model", **options)).get_params() == fitted.get_params()
    with pytest.raises(ArgumentError, match="must hold a saved FCNClassifier, got RandomLS2TClassifier"):
        FCNClassifier.from_pretrained("someone/model", **options)


def test_a_folder_is_read_without_the_hub(fitted, tmp_path, monkeypatch):
    fitted.save_pretrained(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert RandomLS2TClassifier.from_pretrained(tmp_path / "model").classes_.tolist() == ["down", "up"]
    with pytest.raises(ImportError, match=r"'some/model' is not a folder.*pip install 'seq2tens\[hub\]'"):
        RandomLS2TClassifier.from_pretrained("some/model")


def test_models_saved_before_there_were_cards(tmp_path):
    model = MeanImputer.from_pretrained(FIXTURES / "format-1" / "MeanImputer")
    shutil.copytree(FIXTURES / "format-2" / "MeanImputer", tmp_path / "model")
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "README.md").is_file()
    np.testing.assert_array_equal(said(load(tmp_path / "model")), said(model))


def test_the_card(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.library_name == "seq2tens"
    assert "RandomLS2TClassifier" in card.data.tags
    assert "- sequences: `12`" in card.text
    assert '- classes: `["down", "up"]`' in card.text
    assert '- channels: `` ["speed", "a `tick`"] ``' in card.text
    assert "- n_blocks: `2`" in card.text
    code = card.text.partition("```python\n")[2].partition("```")[0]
    exec(code.replace("PATH OR REPOSITORY", str(tmp_path / "model")), namespace := {})
    assert namespace["model"].is_fitted


def test_a_card_may_be_edited_and_is_short(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 1, 5))
    y = np.array([f"class {i % 60}" for i in range(120)])
    DeepLS2TClassifier(epochs=1, width=2, depth=1, random_state=0).fit(X, y).save(tmp_path / "model")
    card = tmp_path / "model" / "README.md"
    assert "and 40 more" in card.read_text()
    card.write_text("my own words")
    assert load(tmp_path / "model").n_classes_ == 60
