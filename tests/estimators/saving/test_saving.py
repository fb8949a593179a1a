import json
import shutil

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from estimator_contract import problem
from estimators.saved_models import FIXTURES
from seq2tens._checks import ArgumentError
from seq2tens.estimators import DeepLS2TClassifier, FCNClassifier, LS2TFeatures, Seq2TensFeatures, load
from seq2tens.training import Checkpoints, OneCycle, Recipe

FILES = ["README.md", "model.json", "model.safetensors"]


def fitted(seed=0, **changes):
    options = {"epochs": 1, "width": 3, "depth": 1, "random_state": seed, "device": "cpu", **changes}
    return DeepLS2TClassifier(**options).fit(*problem(n=8))


def probabilities(model):
    return model.predict_proba(problem(n=8, seed=4)[0])


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_what_is_written(tmp_path):
    model = fitted()
    model.save(tmp_path / "deep" / "model")
    assert names(tmp_path / "deep") == ["model"]
    assert names(tmp_path / "deep" / "model") == FILES
    document = json.loads((tmp_path / "deep" / "model" / "model.json").read_text())
    assert document["class"] == "DeepLS2TClassifier"
    assert document["params"]["recipe"] == "fast"
    assert document["facts"]["classes"] == {"dtype": "<U4", "values": ["down", "up"]}
    assert document["facts"]["history"] == model.history_
    assert {"seq2tens", "torch", "aeon"} <= set(document["versions"])


@pytest.mark.parametrize(
    "params",
    [
        {"recipe": Recipe(epochs=1, batch_size=4, schedule=OneCycle()), "epochs": None},
        {"class_weight": {"up": 2.0, "down": 1.0}},
        {"class_weight": None, "scaling": None},
        {"since_observed": True},
        {"width": np.int64(2), "learning_rate": np.float64(0.1)},
    ],
)
def test_arguments_come_back(params, tmp_path):
    model = fitted(**params)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(probabilities(again), probabilities(model))
    assert again.history_ == model.history_
    assert again.metadata_ == model.metadata_


def test_arguments_that_json_does_not_know_come_back(tmp_path):
    checkpoints = Checkpoints(tmp_path / "run", seconds=3.0, keep=1)
    model = fitted(checkpoint=checkpoints)
    model.set_params(random_state=np.random.RandomState(5), class_weight={1: 2.0, "a": 1.0})
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").get_params()
    assert again["class_weight"] == {1: 2.0, "a": 1.0}
    assert again["checkpoint"] == checkpoints
    assert again["random_state"].randint(1000) == np.random.RandomState(5).randint(1000)


def test_widths_come_back_as_a_tuple(tmp_path):
    from seq2tens.estimators import ResNetClassifier

    model = ResNetClassifier(widths=(2, 3), epochs=1, random_state=0).fit(*problem(n=8))
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").widths == (2, 3)


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    model = fitted()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").fit(*problem(n=8))
    np.testing.assert_array_equal(probabilities(again), probabilities(model))


def test_notes_go_along(tmp_path):
    model = fitted()
    model.save(tmp_path / "model", notes={"source": ["a.ts", 3]})
    assert load(tmp_path / "model").notes_ == {"source": ["a.ts", 3]}
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").notes_ == {}


def test_unfitted_models_are_not_saved(tmp_path):
    for model in (DeepLS2TClassifier(), LS2TFeatures(), Seq2TensFeatures()):
        with pytest.raises(NotFittedError, match="`save` needs a fitted"):
            model.save(tmp_path / "model")
    assert names(tmp_path) == []


class TestOverwriting:
    def test_the_new_model_takes_the_place(self, tmp_path):
        fitted(seed=0).save(tmp_path / "model")
        newer = fitted(seed=1)
        newer.save(tmp_path / "model")
        np.testing.assert_array_equal(probabilities(load(tmp_path / "model")), probabilities(newer))
        assert names(tmp_path) == ["model"]

    def test_the_old_model_survives_a_failure(self, tmp_path):
        old = fitted(seed=0)
        old.save(tmp_path / "model")
        newer = fitted(seed=1).set_params(class_weight=object())
        with pytest.raises(TypeError, match="an argument must be plain data to be saved, got object"):
            newer.save(tmp_path / "model")
        np.testing.assert_array_equal(probabilities(load(tmp_path / "model")), probabilities(old))
        assert names(tmp_path) == ["model"]

    def test_killed_between_the_two_renamings(self, tmp_path):
        old = fitted(seed=0)
        old.save(tmp_path / "model")
        (tmp_path / "model").rename(tmp_path / ".model.previous")
        np.testing.assert_array_equal(probabilities(load(tmp_path / "model")), probabilities(old))
        newer = fitted(seed=1)
        newer.save(tmp_path / "model")
        np.testing.assert_array_equal(probabilities(load(tmp_path / "model")), probabilities(newer))
        assert names(tmp_path) == ["model"]

    def test_an_empty_folder_may_be_used(self, tmp_path):
        fitted().save(tmp_path)
        assert names(tmp_path) == FILES

    def test_other_files_are_never_removed(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(
            ValueError, match=r"`path` must be new or hold a saved model only, got .*thesis.tex"
        ):
            fitted().save(tmp_path)
        with pytest.raises(ValueError, match="`path` must be a folder, got the file"):
            fitted().save(tmp_path / "thesis.tex")
        assert (tmp_path / "thesis.tex").read_text() == "years of work"


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip(path):
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda f: cut(f / "model.safetensors"),
            "must hold a complete model, but .*safetensors cannot be read",
        ),
        (
            lambda f: flip(f / "model.safetensors"),
            "but .*model.safetensors cannot be read: it was changed after it was saved, its digest differs",
        ),
        (
            lambda f: (f / "model.safetensors").unlink(),
            "must hold a complete model, got .* without model.saf",
        ),
        (lambda f: cut(f / "model.json"), "must hold a complete model, but .*model.json cannot be read"),
        (
            lambda f: (f / "model.json").unlink(),
            "must be the folder of a saved model, got .* without model.json",
        ),
        (lambda f: (f / "model.json").write_text("[1]"), "model.json is something else"),
        (lambda f: edit(f / "model.json", extra=1), "model.json is something else"),
        (lambda f: edit(f / "model.json", format=99), "must have format 1 or 2, got 99"),
        (lambda f: edit(f / "model.json", notes={"a": 1}), "model.json cannot be read: it was changed after"),
        (lambda f: edit(f / "model.json", digest="0"), "model.json cannot be read: it was changed after"),
        (
            lambda f: (f / "model.json").write_text("[" * 10**6),
            "must hold a complete model, but .*model.json cannot be read: .*recursion",
        ),
    ],
)
def test_damaged_and_foreign_folders(damage, message, tmp_path):
    fitted().save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model")


def test_a_document_without_end_is_not_read(tmp_path):
    fitted().save(tmp_path / "model")
    with (tmp_path / "model" / "model.json").open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(
        ValueError, match=r"model.json cannot be read: it must have at most \d+ bytes, got 1099"
    ):
        load(tmp_path / "model")


def changed_before(folder, name, **params):
    """A model of format 1, whose document has no digest, with other arguments."""
    shutil.copytree(FIXTURES / "format-1" / name, folder)
    document = json.loads((folder / "model.json").read_text())
    document["params"] |= params
    (folder / "model.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("DeepLS2TClassifier", {"depth": 10**6}),
        ("FCNLS2TClassifier", {"width": 10**9}),
        ("ResNetClassifier", {"widths": ["tuple", [3] * 10**5]}),
        ("GPVAEImputer", {"latent": 10**12}),
        ("RandomLS2TClassifier", {"n_blocks": 10**9}),
        ("RandomLS2TFeatures", {"order": 10**9}),
        ("FCNClassifier", {"kernel": [1]}),
        ("MeanImputer", {"colour": "red"}),
    ],
)
def test_sizes_that_are_not_those_of_the_tensors_are_refused_before_anything_is_built(name, params, tmp_path):
    folder = changed_before(tmp_path / "model", name, **params)
    with pytest.raises(ArgumentError, match=f"the model in {folder} cannot be used here: model.json: "):
        load(folder)


def test_classes_that_are_not_known(tmp_path):
    folder = changed_before(tmp_path / "model", "MeanImputer")
    edit(folder / "model.json", **{"class": "Oracle"})
    with pytest.raises(ValueError, match=r"`path` must hold a saved .*, got Oracle in"):
        load(folder)


def test_no_folder_at_all(tmp_path):
    with pytest.raises(
        ValueError, match=r"`path` must be the folder of a saved model, got .*nothing without"
    ):
        load(tmp_path / "nothing")


def test_the_class_must_be_right(tmp_path):
    fitted().save(tmp_path / "model")
    with pytest.raises(ValueError, match="`path` must hold a saved FCNClassifier, got DeepLS2TClassifier in"):
        FCNClassifier.load(tmp_path / "model")
