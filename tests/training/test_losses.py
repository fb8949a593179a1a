import pytest
import torch

from seq2tens.training import CrossEntropy, Loss, class_weights, fit
from training.problems import Classifier, cross_entropy, forward, make_model, order_task, recipe, train

LOGITS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 3.0]])
LABELS = torch.tensor([0, 0, 0, 1])


def through(model, batch):
    return LOGITS, LABELS


def test_class_weights_are_one_on_average_and_balance():
    weights = class_weights(LABELS)
    assert weights.tolist() == pytest.approx([4 / 6, 2.0])
    assert float(weights[LABELS].mean()) == pytest.approx(1)


def test_class_weights_change_the_loss_as_by_hand():
    each = [-float(LOGITS[i].log_softmax(0)[LABELS[i]]) for i in range(4)]
    plain = CrossEntropy(through)(None, None)
    weighted = CrossEntropy(through, class_weights=class_weights(LABELS))(None, None)
    assert float(plain.mean) == pytest.approx(sum(each) / 4)
    assert float(weighted.mean) == pytest.approx((4 / 6 * sum(each[:3]) + 2 * each[3]) / 4)
    assert plain.weight == weighted.weight == 4


TIMES = torch.tensor([3, 0, 1, 2])
ROWS = torch.arange(4).repeat_interleave(TIMES)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_a_row_weight_is_as_good_as_repeating_the_row(label_smoothing):
    logits, weights = LOGITS.double(), TIMES / TIMES.double().mean()
    options = {"label_smoothing": label_smoothing}
    weighted = CrossEntropy(lambda model, batch: (logits, LABELS, weights), **options)(None, None)
    repeated = CrossEntropy(lambda model, batch: (logits[ROWS], LABELS[ROWS]), **options)(None, None)
    torch.testing.assert_close(weighted.mean, repeated.mean, rtol=1e-14, atol=0)
    assert weighted.weight == 4
    assert [len(output) for output in weighted.outputs] == [4, 4]


def test_class_weights_count_a_row_as_often_as_its_weight():
    assert class_weights(LABELS, TIMES).tolist() == class_weights(LABELS[ROWS]).tolist()
    with pytest.raises(ValueError, match=r"every class up to 1, got none of \[1\]"):
        class_weights(LABELS, [1.0, 1.0, 1.0, 0.0])


def test_label_smoothing_as_by_hand():
    logs = LOGITS.log_softmax(1)
    expected = -(0.9 * logs[torch.arange(4), LABELS] + 0.1 * logs.mean(1)).mean()
    torch.testing.assert_close(CrossEntropy(through, label_smoothing=0.1)(None, None).mean, expected)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2], r"every class up to 2, got none of \[1\]"),
        ([-1, 0], "at least 0, got -1"),
        (["a"], "integers"),
    ],
)
def test_class_weights_check_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        class_weights(labels)


def test_epoch_mean_honours_the_weights():
    """Three batches with the losses 1, 2, 3 and the weights 1, 1, 4."""

    def loss(model, batch):
        value = float(batch[0].flatten()[0])
        return model(torch.zeros(1, 2, 2)).sum() * 0 + value, 4.0 if value == 3 else 1.0

    source = type(order_task())(torch.tensor([1.0, 2.0, 3.0]))
    result = fit(
        Classifier(norm=False), loss, source, recipe=recipe(epochs=1, batch_size=1), seed=0, progress="silent"
    )
    assert result.history[0]["train_loss"] == pytest.approx((1 + 2 + 12) / 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_weights": True}, "`loss` must have `class_weights` exactly if .* got none"),
        ({"label_smoothing": 0.1}, "`loss.label_smoothing` must be the recipe's 0.1, got 0.0"),
    ],
)
def test_a_recipe_is_not_silently_ignored(change, message):
    with pytest.raises(ValueError, match=message):
        fit(make_model(), cross_entropy, order_task(), recipe=recipe(**change), seed=0)


def test_weighted_and_smoothed_training():
    how = recipe(class_weights=True, label_smoothing=0.1, epochs=20)
    assert CrossEntropy.of(how, forward, order_task().labels).class_weights.tolist() == [1, 1]
    _, result = train(how)
    assert result.history[-1]["train_loss"] < result.history[0]["train_loss"]


def test_loss_has_optional_outputs():
    assert Loss(torch.zeros(()), 1).outputs == ()
