from pickle import UnpicklingError

import pytest
import torch

from seq2tens._checks import ArgumentError
from seq2tens.training import (
    Callback,
    Checkpoints,
    Cosine,
    Interrupted,
    NonFiniteLoss,
    OneCycle,
    Plateau,
    TensorSource,
    fit,
)
from seq2tens.training.checkpoint import FORMAT, decode, encode
from training.problems import Script, Scripted, accuracy, make_model, order_task, recipe, same_weights, train

RECIPES = {
    "plateau": recipe(schedule=Plateau(patience=1), patience=3),
    "one cycle": recipe(schedule=OneCycle(), optimizer="adamw", weight_decay=0.01, keep_best=False),
    "cosine, average": recipe(schedule=Cosine(), average=0.9, clip_norm=0.5, class_weights=True),
    "balanced": recipe(sampling="balanced", label_smoothing=0.1, monitor="validation_accuracy", mode="max"),
}
VALIDATION = {"validation": order_task(20, seed=1), "metrics": {"accuracy": accuracy}}


class Crash(Exception):
    pass


class Stop(Callback):
    """Ends the run in an epoch: by a crash, which does not save that epoch, or by Ctrl-C, which does."""

    def __init__(self, at, kind=Crash):
        self.at, self.kind = at, kind

    def epoch(self, row, model):
        if row["epoch"] == self.at:
            raise self.kind


class Impatient(TensorSource):
    """Ctrl-C in the middle of an epoch, when so many batches were given."""

    def batch(self, rows):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().batch(rows)


def impatient(batches, **options):
    source = order_task(**options)
    source.__class__, source.left = Impatient, batches
    return source


def every_epoch(folder):
    return Checkpoints(folder, seconds=0)


def without_time(result):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.history]


@pytest.mark.parametrize("name", RECIPES)
def test_stopped_in_every_epoch_ends_the_same(name, tmp_path):
    how = RECIPES[name]
    expected, whole = train(how, **VALIDATION)
    for at in range(1, how.epochs + 1):
        with pytest.raises(Crash):
            train(how, checkpoint=every_epoch(tmp_path), callbacks=[Stop(at)], **VALIDATION)
    model, result = train(how, checkpoint=every_epoch(tmp_path), **VALIDATION)
    assert same_weights(model, expected)
    assert without_time(result) == without_time(whole)
    assert (result.best_epoch, result.stopped) == (whole.best_epoch, whole.stopped)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("batches", [6, 8, 17])  # of six to an epoch
def test_interrupted_at_any_moment_it_is_saved_and_goes_on_to_the_same(name, batches, tmp_path):
    how, rarely = RECIPES[name], Checkpoints(tmp_path, seconds=1e6)
    expected, whole = train(how, **VALIDATION)
    with pytest.raises(Interrupted):
        train(how, source=impatient(batches), checkpoint=rarely, **VALIDATION)
    (saved,) = tmp_path.iterdir()
    assert saved.name == f"epoch-00000{batches // 6}.pt"
    model, result = train(how, checkpoint=rarely, **VALIDATION)
    assert same_weights(model, expected)
    assert without_time(result) == without_time(whole)


@pytest.mark.parametrize("name", RECIPES)
def test_interrupted_a_model_is_that_of_a_run_which_ends_there(name):
    kept = []

    class Keep(Callback):
        def epoch(self, row, model):
            kept.append({k: v.clone() for k, v in model.state_dict().items()})

    how, model = RECIPES[name], make_model()
    with pytest.raises(Interrupted) as caught:
        train(how, model=model, callbacks=[Keep(), Stop(3, KeyboardInterrupt)], **VALIDATION)
    result = caught.value.result
    assert (result.stopped, result.epochs) == ("interrupted", 3)
    assert not model.training
    if how.average is None:
        expected = kept[result.best_epoch - 1 if how.keep_best else 2]
        assert all(torch.equal(value, expected[key]) for key, value in model.state_dict().items())


def test_within_an_epoch_an_average_does_not_stay_in_the_place_of_the_weights():
    how, at_epoch, within = RECIPES["cosine, average"], make_model(), make_model()
    with pytest.raises(Interrupted):
        train(how, model=at_epoch, callbacks=[Stop(2, KeyboardInterrupt)], **VALIDATION)
    with pytest.raises(Interrupted):  # in the third validation, when they have changed places
        train(how, model=within, validation=impatient(2, n=20, seed=1), metrics=VALIDATION["metrics"])
    assert same_weights(at_epoch, within)


def test_before_the_end_of_an_epoch_nothing_is_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught:
        train(recipe(), source=impatient(5), checkpoint=tmp_path)
    assert not isinstance(caught.value, Interrupted)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_in_the_first_epoch_after_going_on(tmp_path):
    expected, _ = train(recipe())
    with pytest.raises(Interrupted):
        train(recipe(), checkpoint=tmp_path, callbacks=[Stop(2, KeyboardInterrupt)])
    with pytest.raises(Interrupted) as caught:
        train(recipe(), source=impatient(3), checkpoint=tmp_path)
    assert caught.value.result.epochs == 2
    assert same_weights(train(recipe(), checkpoint=tmp_path)[0], expected)


def test_a_finished_run_is_not_trained_again(tmp_path):
    first, a = train(recipe(), checkpoint=tmp_path)
    again, b = train(recipe(), checkpoint=tmp_path, callbacks=[Stop(1), Stop(4)])
    assert same_weights(first, again)
    assert a == b


def test_two_generations_and_nothing_else(tmp_path):
    train(recipe(), checkpoint=every_epoch(tmp_path))
    assert [p.name for p in sorted(tmp_path.iterdir())] == [
        "epoch-000003.pt",
        "epoch-000004.pt",
    ]


def test_saves_as_often_as_asked(tmp_path):
    train(recipe(), checkpoint=Checkpoints(tmp_path, seconds=1e6))
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-000004.pt"]


DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "header": lambda content: content[:40] + b"#" + content[41:],
    "history": lambda content: content.replace(b"train_loss", b"train_lass", 1),
    "noise": lambda content: bytes(range(256)) * 4,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_falls_back_to_the_one_before(kind, tmp_path):
    expected, _ = train(recipe())
    train(recipe(), checkpoint=every_epoch(tmp_path))
    newest = tmp_path / "epoch-000004.pt"
    newest.write_bytes(DAMAGE[kind](newest.read_bytes()))
    seen = []

    class Spy(Callback):
        def start(self, history):
            seen.append(len(history))

    with pytest.warns(RuntimeWarning, match="epoch-000004.pt is damaged"):
        model, _ = train(recipe(), checkpoint=every_epoch(tmp_path), callbacks=[Spy()])
    assert seen == [3]
    assert same_weights(model, expected)
    assert newest.with_suffix(".damaged").exists()


def test_all_damaged_starts_over(tmp_path):
    expected, _ = train(recipe(), checkpoint=every_epoch(tmp_path))
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="is damaged") as warned:
        model, _ = train(recipe(), checkpoint=every_epoch(tmp_path))
    assert len(warned) == 2
    assert same_weights(model, expected)


def test_an_unfinished_file_is_not_looked_at(tmp_path):
    (tmp_path / ".seq2tens-0123").write_bytes(b"half of a chec")
    assert Checkpoints(tmp_path).read() is None
    train(recipe(epochs=1), checkpoint=tmp_path)
    assert not (tmp_path / ".seq2tens-0123").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 1.0}, "its recipe.learning_rate is 0.01, this run's is 1.0; use another folder"),
        ({"schedule": Cosine()}, "its recipe.schedule.floor is None, this run's is 0.0"),
    ],
)
def test_another_recipe_is_refused(change, message, tmp_path):
    train(recipe(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=message):
        train(recipe(**change), checkpoint=tmp_path)


def test_a_checkpoint_from_before_a_setting_existed(tmp_path):
    train(recipe(), checkpoint=tmp_path)
    path = Checkpoints(tmp_path).generations()[0]
    saved = decode(path.read_bytes())
    del saved["run"]["recipe"]["eps"]
    path.write_bytes(encode(saved))
    train(recipe(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"its recipe.eps is 1e-08, this run's is 1e-07"):
        train(recipe(eps=1e-7), checkpoint=tmp_path)


def test_another_seed_is_refused(tmp_path):
    train(recipe(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="its seed is 0, this run's is 1"):
        train(recipe(), checkpoint=tmp_path, seed=1)


def test_nothing_saved_is_lost_by_a_loss_that_is_not_finite(tmp_path):
    def run(losses):
        script = Script(losses)
        return fit(
            Scripted(),
            Script.loss,
            script,
            recipe=recipe(),
            seed=0,
            checkpoint=every_epoch(tmp_path),
            progress="silent",
        )

    with pytest.raises(NonFiniteLoss, match="epoch 3"):
        run([4, 3, float("nan")])
    assert [p.stem for p in Checkpoints(tmp_path).generations()] == ["epoch-000002", "epoch-000001"]
    assert [row["train_loss"] for row in run([2, 1]).history] == [4, 3, 2, 1]


def test_the_file_holds_plain_data_and_tensors_only(tmp_path):
    train(recipe(schedule=Plateau(patience=1)), checkpoint=tmp_path)
    saved = decode((tmp_path / "epoch-000004.pt").read_bytes())
    assert saved["format"] == FORMAT
    assert len(saved["history"]) == 4
    assert saved["run"]["recipe"] == recipe(schedule=Plateau(patience=1)).to_dict()
    assert {"seq2tens", "torch", "lightning-fabric"} == set(saved["versions"])


class Exploding:
    def __reduce__(self):
        return print, ("code was run",)


def test_code_in_a_file_is_not_run(capsys):
    with pytest.raises(UnpicklingError):
        decode(encode({"model": Exploding()}))
    assert capsys.readouterr().out == ""


def test_a_checkpoint_of_format_1_is_refused(tmp_path):
    (tmp_path / "epoch-000004.safetensors").write_bytes(b"")
    with pytest.raises(ArgumentError, match=r"must have format 2, got format 1, .*000004.safetensors; use"):
        train(recipe(), checkpoint=tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_encoding_keeps_every_type(dtype):
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b": torch.ones((), dtype=dtype)}
    again = decode(encode({"tensors": tensors, "x": 0.1, "betas": (0.9, 0.99)}))
    assert (again["x"], again["betas"]) == (0.1, (0.9, 0.99))
    read = again["tensors"]
    assert all(torch.equal(tensors[k], read[k]) and read[k].dtype == dtype for k in tensors)


def test_every_flipped_bit_is_noticed():
    content = encode({"a": torch.arange(2.0), "x": 0.1})
    for place in range(len(content)):
        flipped = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        with pytest.raises(ArgumentError):
            decode(flipped)
    for end in range(len(content)):
        with pytest.raises(ArgumentError):
            decode(content[:end])
