import numpy as np
import pytest
import torch
from torch.testing import assert_close

from comparison import gradients_of
from seq2tens.estimators.networks import WithHead, forward_batch
from seq2tens.estimators.weighting import class_weights, row_weights
from seq2tens.nn import DeepLS2T
from seq2tens.training import CrossEntropy, SequenceBatch

LABELS = torch.tensor([0, 1, 0, 0, 1, 0])
CLASSES = np.array(["down", "up"])


def test_row_weights_have_mean_one():
    assert row_weights(None, LABELS) is None
    assert_close(row_weights([2, 2, 2, 2, 1, 3], LABELS), torch.tensor([1, 1, 1, 1, 0.5, 1.5]))


def test_class_weights():
    assert class_weights(None, CLASSES, LABELS, None) is None
    assert_close(class_weights("balanced", CLASSES, LABELS, None), torch.tensor([6 / 8, 6 / 4]))
    assert_close(class_weights({"up": 3, "down": 0.5}, CLASSES, LABELS, None), torch.tensor([0.5, 3.0]))
    assert_close(class_weights({np.str_("up"): 3}, CLASSES, LABELS, None), torch.tensor([1.0, 3.0]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("even", "`class_weight` must be None, 'balanced' or a dictionary of weights by label, got 'even'"),
        (
            {"left": 1.0},
            r"`class_weight` must only have labels of `y`, \['down', 'up'\], got also \['left'\]",
        ),
        ({"up": -1.0}, "`class_weight` must be finite and at least 0"),
    ],
)
def test_wrong_class_weights(wrong, message):
    with pytest.raises(ValueError, match=message):
        class_weights(wrong, CLASSES, LABELS, None)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"up": 3.0}])
def test_a_weight_is_as_good_as_repeating_the_row(class_weight, generator):
    """The loss of all rows and its derivatives, in float64."""
    model = WithHead(DeepLS2T(2, 3, 1), 2).double().eval()
    x = torch.randn(6, 5, 2, generator=generator, dtype=torch.float64)
    times = torch.tensor([3, 1, 2, 0, 1, 2])

    def loss_and_gradients(rows, sample_weight):
        labels = LABELS[rows]
        weights = row_weights(sample_weight, labels)
        loss = CrossEntropy(
            forward_batch, class_weights=class_weights(class_weight, CLASSES, labels, weights)
        )
        mean = loss(model, SequenceBatch(x[rows], None, labels, weights)).mean
        gradients = torch.autograd.grad(mean, model.parameters())
        return {"mean": mean, **gradients_of(model, gradients)}

    # weights are kept in float32; these are exact in it
    weighted = loss_and_gradients(torch.arange(6), (times * 2).tolist())
    repeated = loss_and_gradients(torch.arange(6).repeat_interleave(times), None)
    assert_close(weighted, repeated, rtol=1e-6, atol=1e-7)
