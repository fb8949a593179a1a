"""Networks take a PackedSequence, as layers do."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seq2tens import nn

VECTORS = {
    "FCN": lambda: nn.FCN(3, 4),
    "ResNet": lambda: nn.ResNet(3, (4, 4)),
    "DeepLS2T": lambda: nn.DeepLS2T(3, 4),
    "FCNLS2T": lambda: nn.FCNLS2T(3, 4, 4),
}
STEPS = {
    "FCN": lambda: nn.FCN(3, 4, return_sequences=True),
    "DeepLS2T": lambda: nn.DeepLS2T(3, 4, return_sequences=True),
}
LENGTHS = torch.tensor([5, 9, 1, 7])


def sequences():
    return torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(0))


def pack(x):
    return pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_in_the_order_of_the_batch(name):
    network, x = VECTORS[name]().eval(), sequences()
    y = network(pack(x))
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, network(x, lengths=LENGTHS))


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_packed_as_they_came(name):
    network, x = STEPS[name]().eval(), sequences()
    packed = pack(x)
    y = network(packed)
    assert isinstance(y, PackedSequence)
    assert torch.equal(y.batch_sizes, packed.batch_sizes)
    padded, lengths = pad_packed_sequence(y, batch_first=True)
    assert torch.equal(lengths, LENGTHS)
    expected = network(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS):
        assert torch.equal(padded[row, :length], expected[row, :length])


def test_gradients_reach_what_was_packed():
    network, x = nn.DeepLS2T(3, 4), sequences().requires_grad_()
    network(pack(x)).square().mean().backward()
    inside = torch.arange(9) < LENGTHS[:, None]
    assert (x.grad[inside].abs().sum(1) > 0).all()
    assert not x.grad[~inside].any()


def test_a_mask_beside_it_is_refused():
    x = sequences()
    with pytest.raises(ValueError, match="`mask` and `lengths` must be None for a PackedSequence"):
        nn.FCN(3, 4)(pack(x), lengths=LENGTHS)
