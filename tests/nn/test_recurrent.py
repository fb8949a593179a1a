"""`LS2T.like_lstm` stands where a torch.nn.LSTM was: arguments, shapes, states."""

import inspect

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seq2tens import LS2T

LENGTHS = torch.tensor([5, 9, 1, 7])


def sequences(batch=4, time=9):
    return torch.randn(batch, time, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_shapes_are_those_of_an_lstm(num_layers, bidirectional, batch_first):
    arguments = {"num_layers": num_layers, "bidirectional": bidirectional, "batch_first": batch_first}
    x = sequences() if batch_first else sequences().transpose(0, 1)
    expected, (hidden, _) = torch.nn.LSTM(3, 8, **arguments)(x)
    output, (final, layers) = LS2T.like_lstm(3, 8, **arguments)(x)
    assert output.shape == expected.shape
    assert final.shape == hidden.shape
    assert len(layers) == num_layers


def test_arguments_have_the_names_order_and_defaults_of_an_lstm():
    ours = {
        name: parameter.default
        for name, parameter in inspect.signature(LS2T.like_lstm).parameters.items()
        if name != "options"
    }
    theirs = torch.nn.LSTM(3, 8)
    assert list(ours) == [
        "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
    ]  # fmt: skip
    assert all(ours[name] == getattr(theirs, name) for name in list(ours)[2:])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_a_layer_computes(bidirectional):
    torch.manual_seed(0)
    module = LS2T.like_lstm(3, 8, 2, batch_first=True, bidirectional=bidirectional, order=2).eval()
    y = sequences()
    for layers, norms in zip(module.layers, module.norms, strict=True):
        pairs = zip(layers, norms, strict=True)
        y = torch.cat([norm(layer(y, lengths=LENGTHS)).flatten(2) for layer, norm in pairs], dim=2)
    output, state = module(sequences(), lengths=LENGTHS)
    assert torch.equal(output, y)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(state.final[-1 - bidirectional, row], output[row, length - 1, :8])
        if bidirectional:
            torch.testing.assert_close(state.final[-1, row], output[row, 0, 8:])


def test_a_state_goes_on_where_a_call_ended():
    module, x = LS2T.like_lstm(3, 8, 2, batch_first=True).double(), sequences().double()
    whole, end = module(x)
    state, parts = None, []
    for part in x.split([4, 1, 4], dim=1):
        output, state = module(part, state)
        parts.append(output)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    torch.testing.assert_close(state.final, end.final)
    assert state.layers[0].steps.tolist() == [9] * 4
    assert not state.detach().final.requires_grad


def test_packed_sequences():
    module, x = LS2T.like_lstm(3, 8, 2, bidirectional=True), sequences()
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    output, state = module(packed)
    assert isinstance(output, PackedSequence)
    padded, _ = pad_packed_sequence(output)
    expected, end = module(x.transpose(0, 1), lengths=LENGTHS)
    inside = torch.arange(9)[:, None] < LENGTHS
    assert torch.equal(padded[inside], expected[inside])
    assert torch.equal(state.final, end.final)


def test_outputs_do_not_grow_with_the_length():
    torch.manual_seed(0)
    module = LS2T.like_lstm(3, 8, 3, batch_first=True)
    sizes = [module(sequences(8, time))[0][:, -1].square().mean().sqrt() for time in (50, 2000)]
    assert 0.5 < sizes[1] / sizes[0] < 2


def test_it_is_trained_in_the_place_of_an_lstm():
    """Which of two impulses comes first: their order decides, not their values."""
    torch.manual_seed(0)
    labels = torch.arange(64) % 2
    x = torch.zeros(64, 20, 2)
    early, late = torch.randint(1, 9, (64,)), torch.randint(11, 20, (64,))
    x[torch.arange(64), early, labels] = 1
    x[torch.arange(64), late, 1 - labels] = 1
    layers, head = LS2T.like_lstm(2, 16, batch_first=True), torch.nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], lr=0.05)
    for _ in range(60):
        _, (final, _) = layers(x)
        loss = torch.nn.functional.cross_entropy(head(final[-1]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (head(layers(x)[1].final[-1]).argmax(1) == labels).float().mean() > 0.95


def test_refusals():
    with pytest.raises(ValueError, match="`hidden_size` must be a multiple of order 2 and larger, got 7"):
        LS2T.like_lstm(3, 7)
    with pytest.raises(ValueError, match="`hidden_size` must be a multiple of order 4 and larger, got 4"):
        LS2T.like_lstm(3, 4, order=4)
    with pytest.raises(ValueError, match=r"`dropout` must lie in \[0, 1\), got 1"):
        LS2T.like_lstm(3, 8, dropout=1)
    both, x = LS2T.like_lstm(3, 8, bidirectional=True), sequences()
    _, state = both(x)
    with pytest.raises(ValueError, match="`state` must be None if `bidirectional`"):
        both(x, state)
    with pytest.raises(ValueError, match="`state` must have 2 layers, got 1"):
        LS2T.like_lstm(3, 8, 2)(x, LS2T.like_lstm(3, 8)(x)[1])
