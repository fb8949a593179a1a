import pytest
from torch import nn

from seq2tens.training import (
    BatchRule,
    Constant,
    Cosine,
    OneCycle,
    Plateau,
    Recipe,
    fast_recipe,
    paper_recipe,
)
from seq2tens.training.loop import make_optimizer

RECIPES = [
    Recipe(epochs=3, batch_size=4),
    Recipe(epochs=3, batch_size=BatchRule(fraction=0.1, low=4, high=16), schedule=Cosine(warmup=0.2)),
    Recipe(epochs=3, batch_size=4, schedule=Plateau(patience=10), monitor="validation_auprc", mode="max"),
    Recipe(epochs=3, batch_size=4, schedule=Constant(), average=0.99, clip_norm=1.0, sampling="balanced"),
    paper_recipe(270),
    fast_recipe(270),
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_json_round_trip(recipe):
    assert Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lerning_rate": 1}, r"`recipe` must only have the keys .* got also \['lerning_rate'\]"),
        ({"schedule": {"kind": "plateau", "patience": 1, "wait": 2}}, r"`schedule` .* got also \['wait'\]"),
        ({"schedule": {"kind": "cubic"}}, "`schedule.kind` must be one of 'constant', .* got 'cubic'"),
        ({"schedule": {"kind": "plateau"}}, r"`schedule` must have the keys \['patience'\]"),
        ({"batch_size": {"fraction": 0.1, "low": 1}}, "`batch_size` must have the keys"),
        ({"batch_size": {"fraction": 0.1, "low": 9, "high": 3}}, "`high` must be at least `low` = 9, got 3"),
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"learning_rate": -1.0}, r"`learning_rate` must lie in \(0, inf\), got -1.0"),
        ({"eps": 0.0}, r"`eps` must lie in \(0, inf\), got 0.0"),
        ({"label_smoothing": 1.0}, r"`label_smoothing` must lie in \[0, 1\), got 1.0"),
        ({"optimizer": "sgd"}, "`optimizer` must be one of 'adam', 'adamw', got 'sgd'"),
        ({"monitor": "auprc"}, "`monitor` must be 'train_loss' or begin with 'validation_', got 'auprc'"),
        ({"average": 1}, r"`average` must lie in \(0, 1\), got 1"),
    ],
)
def test_wrong_settings_are_named(change, message):
    data = Recipe(epochs=3, batch_size=4).to_dict() | change
    with pytest.raises(ValueError, match=message):
        Recipe.from_dict(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "plateau"}, "`schedule` must be one of Constant, .* got str"),
        ({"learning_rate": "1e-3"}, "`learning_rate` must be a number, got str"),
        ({"batch_size": 2.5}, "`batch_size` must be an integer, got float"),
    ],
)
def test_wrong_types_are_named(change, message):
    with pytest.raises(TypeError, match=message):
        Recipe(**{"epochs": 3, "batch_size": 4} | change)


@pytest.mark.parametrize(
    ("n_train", "model", "batch", "epochs"),
    [
        (27, "fcn-ls2t", 4, 2000),
        (99, "fcn-ls2t", 9, 2000),
        (270, "fcn-ls2t", 16, 2000),
        (270, "resnet", 27, 1500),
        (10_000, "resnet", 64, 1500),
    ],
)
def test_paper_recipe(n_train, model, batch, epochs):
    recipe = paper_recipe(n_train, model)
    assert (recipe.batch_size, recipe.epochs) == (batch, epochs)
    assert (recipe.optimizer, recipe.learning_rate, recipe.weight_decay) == ("adam", 1e-3, 0)
    assert recipe.schedule == Plateau(patience=100, factor=0.5, floor=1e-4)
    assert (recipe.monitor, recipe.mode, recipe.patience, recipe.keep_best) == (
        "train_loss",
        "min",
        500,
        True,
    )
    assert recipe.class_weights
    assert (recipe.eps, recipe.sampling) == (1e-7, "remainder")


def test_eps_reaches_the_optimizer():
    for optimizer in ("adam", "adamw"):
        recipe = Recipe(epochs=1, batch_size=1, optimizer=optimizer, eps=1e-7)
        assert make_optimizer(nn.Linear(1, 1), recipe, fused=False).param_groups[0]["eps"] == 1e-7


@pytest.mark.parametrize("n_train", [1, 5, 100, 5000, 10**6])
def test_fast_recipe_is_one_cycle_of_bounded_length(n_train):
    recipe = fast_recipe(n_train)
    assert isinstance(recipe.schedule, OneCycle)
    assert 30 <= recipe.epochs <= 200
    assert 8 <= recipe.batch_size <= 64
