import copy

import pytest
import torch
from torch import nn

from seq2tens.training import NonFiniteLoss, Subset, fit, validation_split
from training.problems import (
    QUIET,
    Script,
    Scripted,
    accuracy,
    cross_entropy,
    make_model,
    order_task,
    recipe,
    same_weights,
    train,
)


def test_learns_the_order_task(generator):
    data = order_task(120)
    kept, held = validation_split(data.labels, 0.25, generator)
    model = make_model()
    result = fit(
        model,
        cross_entropy,
        Subset(data, kept),
        recipe=recipe(epochs=30, monitor="validation_accuracy", mode="max"),
        seed=0,
        validation=Subset(data, held),
        metrics={"accuracy": accuracy},
        **QUIET,
    )
    first, last = result.history[0], result.history[-1]
    assert last["train_loss"] < 0.3 * first["train_loss"]
    assert result.best["validation_accuracy"] > 0.9
    assert list(last) == ["epoch", "train_loss", "validation_loss", "validation_accuracy", "rate", "seconds"]
    assert not model.training
    logits = model(data.tensors[0][held])
    assert accuracy(logits, data.labels[held]) == result.best["validation_accuracy"]


@pytest.mark.parametrize("sampling", ["shuffle", "buckets", "balanced"])
def test_same_seed_same_weights(sampling):
    how = recipe(sampling=sampling)
    (a, first), (b, second), (c, _) = (train(how, seed=seed) for seed in (0, 0, 1))
    assert same_weights(a, b)
    assert not same_weights(a, c)
    assert [row["train_loss"] for row in first.history] == [row["train_loss"] for row in second.history]


def test_the_global_generator_has_no_influence_and_is_left_alone():
    torch.manual_seed(1)
    a, _ = train(recipe())
    torch.manual_seed(2)
    before = torch.get_rng_state()
    b, _ = train(recipe())
    assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(a, b)


def test_the_global_generator_is_put_back_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(NonFiniteLoss):
        fit(Scripted(), Script.loss, Script([float("nan")]), recipe=recipe(), seed=0, **QUIET)
    assert torch.equal(torch.get_rng_state(), before)


def test_one_step_is_adam():
    model, by_hand = make_model(dropout=0.0), make_model(dropout=0.0)
    data = order_task(8)
    fit(model, cross_entropy, data, recipe=recipe(epochs=1, weight_decay=0.1), seed=0, **QUIET)
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=1e-2, weight_decay=0.1)
    cross_entropy(by_hand, data.tensors).mean.backward()
    optimizer.step()
    for (name, weight), expected in zip(model.named_parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, msg=lambda text, name=name: f"{name}: {text}")


class Norms(nn.Module):
    """One weight with a gradient of 10."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.seen = []
        self.weight.register_post_accumulate_grad_hook(lambda p: self.seen.append(p))

    def forward(self, x):
        return 10 * self.weight.sum() + x.sum()


@pytest.mark.parametrize(("clip", "expected"), [(None, 10.0), (2.0, 2.0), (50.0, 10.0)])
def test_gradient_clipping(clip, expected, monkeypatch):
    norms = []
    step = torch.optim.Adam.step

    def spy(self, *args, **kwargs):
        norms.append(float(self.param_groups[0]["params"][0].grad.norm()))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    fit(Norms(), Script.loss, Script([1.0]), recipe=recipe(epochs=2, clip_norm=clip), seed=0, **QUIET)
    assert norms == pytest.approx([expected] * 2, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"seed": 1.0}, TypeError, "`seed` must be an integer, got float"),
        ({"metrics": {"a": accuracy}}, ValueError, r"`metrics` need `validation`, got \['a'\]"),
        (
            {"recipe": recipe(monitor="validation_loss")},
            ValueError,
            "`recipe.monitor` must be one of 'train_loss', got",
        ),
        ({"progress": "loud"}, ValueError, "`progress` must be one of"),
    ],
)
def test_wrong_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        fit(make_model(), cross_entropy, order_task(), **{"recipe": recipe(), "seed": 0} | options)


def test_double_precision_is_kept():
    data = order_task()
    source = type(data)(data.tensors[0].double(), data.tensors[1])
    model = make_model().double()
    fit(model, cross_entropy, source, recipe=recipe(epochs=1), seed=0, **QUIET)
    assert model.head.weight.dtype == torch.float64


def test_frozen_parameters_stay():
    model = make_model()
    model.features.requires_grad_(False)
    before = copy.deepcopy(model.features.blocks[0].ls2t.state_dict())
    train(recipe(), model=model)
    after = model.features.blocks[0].ls2t.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions(precision):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    _, result = train(recipe(epochs=20), fabric=fabric, validation=order_task(20, seed=1))
    assert result.history[-1]["train_loss"] < 0.6 * result.history[0]["train_loss"]
