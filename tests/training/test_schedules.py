import math

import pytest
import torch

from seq2tens.training import Constant, Cosine, OneCycle, Plateau, StepDecay, fit, paper_recipe
from seq2tens.training.recipe import Recipe
from training.problems import QUIET, Script, Scripted, recipe


def follow(losses, how):
    """Train on a given sequence of losses."""
    script, model = Script(losses), Scripted()
    return model, fit(model, Script.loss, script, recipe=how, seed=0, **QUIET)


def rates(result):
    return [row["rate"] for row in result.history]


def paper():
    """The paper's recipe without class weights, which scripted losses have no use for."""
    return Recipe.from_dict(paper_recipe(100).to_dict() | {"class_weights": False})


def test_paper_recipe_halves_stops_and_keeps_the_best():
    model, result = follow([3, 2, 1, *[1.5] * 2000], paper())
    assert result.stopped == "patience"
    assert (result.epochs, result.best_epoch, result.best["train_loss"]) == (503, 3, 1)
    # The third loss is the best; 100 epochs without a better one later, epoch 104 is at half the rate.
    changes = [i + 1 for i in range(1, 503) if rates(result)[i] != rates(result)[i - 1]]
    assert changes == [104, 204, 304, 404]
    assert sorted(set(rates(result)), reverse=True) == pytest.approx([1e-3, 5e-4, 2.5e-4, 1.25e-4, 1e-4])
    # A constant gradient moves Adam by the rate in every step: the weights are those of the third epoch.
    assert float(model.weight.detach()) == pytest.approx(3e-3, rel=1e-4)


def test_paper_recipe_goes_on_while_the_loss_falls():
    _, result = follow([1 / i for i in range(1, 2001)], paper())
    assert (result.stopped, result.epochs, result.best_epoch) == ("epochs", 2000, 2000)
    assert set(rates(result)) == {1e-3}


def test_an_equal_loss_is_not_better():
    _, result = follow([1.0] * 10, recipe(epochs=10, schedule=Plateau(patience=2), patience=5))
    assert (result.epochs, result.best_epoch) == (6, 1)
    assert rates(result) == pytest.approx([1e-2, 1e-2, 1e-2, 5e-3, 5e-3, 2.5e-3])


def test_without_keep_best_the_last_weights_stay():
    model, result = follow([1, 2, 3, 4], recipe(keep_best=False))
    assert result.best_epoch == 1
    assert float(model.weight.detach()) == pytest.approx(4e-2, rel=1e-4)


def test_constant():
    _, result = follow([1, 2, 3, 4], recipe(schedule=Constant()))
    assert rates(result) == [1e-2] * 4


def test_cosine_rises_in_a_line_and_falls_to_its_floor():
    _, result = follow([1.0] * 21, recipe(epochs=21, schedule=Cosine(warmup=0.2, floor=0.1)))
    values = torch.tensor(rates(result)) / 1e-2
    torch.testing.assert_close(values[:5], torch.tensor([0.2, 0.4, 0.6, 0.8, 1.0]))
    assert float(values[5]) == pytest.approx(1)
    expected = [0.1 + 0.45 * (1 + math.cos(math.pi * (i - 5) / 16)) for i in range(5, 21)]
    torch.testing.assert_close(values[5:], torch.tensor(expected))


def test_one_cycle_starts_low_peaks_and_ends_lower():
    _, result = follow([1.0] * 20, recipe(epochs=20, schedule=OneCycle(warmup=0.25, start=10, end=100)))
    assert rates(result)[0] == pytest.approx(1e-3)
    assert max(rates(result)) == pytest.approx(1e-2)
    assert rates(result).index(max(rates(result))) == 4
    assert rates(result)[-1] == pytest.approx(1e-5)


def test_more_is_better_where_the_mode_says_so():
    how = recipe(monitor="validation_score", mode="max", patience=2, epochs=9)
    scores = iter([0.1, 0.5, 0.3, 0.4, 0.9])
    model = Scripted()
    result = fit(
        model,
        lambda module, batch: (module(batch), 1, (batch[None],)),
        Script([1.0]),
        recipe=how,
        seed=0,
        validation=Script([1.0]),
        metrics={"score": lambda outputs: next(scores)},
        **QUIET,
    )
    assert (result.epochs, result.best_epoch, result.best["validation_score"]) == (4, 2, 0.5)


def test_step_decay_goes_down_every_few_epochs_to_the_floor():
    _, result = follow([1] * 9, recipe(epochs=9, schedule=StepDecay(every=2, factor=0.5, floor=0.2)))
    start = result.history[0]["rate"]
    assert [rate / start for rate in rates(result)] == pytest.approx(
        [1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2]
    )
