"""LS2T of a network of every step, against the full map with that network as its lift."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from seq2tens.algebra import FreeTensor, lifts, seq2tens
from seq2tens.functional import ls2t
from seq2tens.nn import FCN, LS2T, NeuralLS2T, checkpoint_chunks, time_chunks

EXACT = {"rtol": 1e-10, "atol": 1e-10}


class Levels(nn.Module):
    """Networks for the levels of a lift: none is a power of another."""

    def __init__(self, in_features, features, levels):
        super().__init__()
        self.features = features
        self.parts = nn.ModuleList(nn.Linear(in_features, features**j) for j in range(1, levels + 1))

    def forward(self, x):
        levels = [part(x).sin() for part in self.parts]
        return [t.reshape(*x.shape[:-1], *(self.features,) * j) for j, t in enumerate(levels, 1)]


def mlp(in_features=3, features=4):
    return nn.Sequential(nn.Linear(in_features, 5), nn.Tanh(), nn.Linear(5, features))


CASES = {
    "static": (mlp, {}),
    "independent": (mlp, {"weights": "independent", "reverse": True}),
    "symmetric": (mlp, {"weights": "symmetric"}),
    "lifted": (mlp, {"lift_order": 2, "normalize": True}),
    "two levels": (lambda: Levels(3, 2, 2), {}),
    "three levels": (lambda: Levels(3, 2, 3), {"reverse": True}),
    "more levels than the order": (lambda: Levels(3, 1, 4), {"normalize": True}),
    "end": (lambda: Levels(3, 2, 2), {"return_sequences": False, "sum_levels": True}),
}


def build(name, order=3):
    torch.manual_seed(0)
    phi, options = CASES[name]
    layer = NeuralLS2T(3, 2, order, phi=phi(), **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer


@pytest.fixture(params=CASES)
def layer(request):
    return build(request.param)


@pytest.fixture
def x():
    return torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def with_constant(levels):
    """The levels of a lift with a constant coordinate in level 1, which carries the bias."""
    first = torch.cat([levels[0], torch.ones_like(levels[0][..., :1])], dim=-1)
    return [first, *(nn.functional.pad(t, (0, 1) * j) for j, t in enumerate(levels[1:], 2))]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("order", "levels"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3), (4, 3)])
def test_is_an_inner_product_with_the_full_map(x, order, levels, reverse, bias):
    torch.manual_seed(0)
    layer = NeuralLS2T(3, 2, order, phi=Levels(3, 2, levels), bias=bias, reverse=reverse).double()
    vectors = layer.weight
    if bias:
        layer.bias.data.uniform_(-1, 1)
        vectors = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
    lift = (lambda x: with_constant(layer.phi(x))) if bias else layer.phi
    mask = torch.tensor([[1, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    y = layer(x[:, :4], mask)
    for step in range(4):
        window = slice(step, 4) if reverse else slice(0, step + 1)
        phi = seq2tens(x[:, window], order, lift, mask=mask[:, window])
        for m in range(1, order + 1):
            for k in range(2):
                inner = phi.inner(FreeTensor.pure(vectors[:m, :, k], order))
                assert_close(y[:, step, m - 1, k], inner, **EXACT)


def test_a_static_map_is_applied_before_the_layer(x):
    layer = build("static")
    assert_close(layer(x), ls2t(layer.phi(x), layer.weight, layer.bias, order=3), **EXACT)


@pytest.mark.parametrize("p", [2, 3])
def test_powers_as_a_network_are_the_lift_of_the_layer(x, p):
    powers = NeuralLS2T(3, 4, 3, phi=lifts.exponential(p), bias=False).double()
    layer = LS2T(3, 4, 3, lift_order=p, bias=False).double()
    layer.load_state_dict({"weight": powers.weight})
    assert_close(powers(x), layer(x), **EXACT)


def test_state_continues(layer, x):
    whole, final = layer(x, return_state=True)
    first, second = (slice(4, None), slice(0, 4)) if layer.reverse else (slice(0, 4), slice(4, None))
    _, state = layer(x[:, first], return_state=True)
    y, end = layer(x[:, second], state=state, return_state=True)
    assert_close(y, whole[:, second] if layer.return_sequences else whole, **EXACT)
    assert_close(end.levels, final.levels, **EXACT)
    assert torch.equal(end.steps, final.steps)


def test_chunks_are_one_call(layer, x):
    order = -1 if layer.reverse else 1  # backwards, the last chunk comes first
    outputs, _ = checkpoint_chunks(layer, time_chunks(x, 4)[::order])
    y = torch.cat(outputs[::order], dim=1) if layer.return_sequences else outputs[-1]
    assert_close(y, layer(x), **EXACT)


def test_padding_may_hold_anything(layer, x):
    y = layer(x)
    for before, after in [(3, 0), (0, 2)]:
        padded = nn.functional.pad(x, (0, 0, before, after), value=math.nan).requires_grad_()
        mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
        mask[:, before : before + 6] = True
        layer.zero_grad()
        z = layer(padded, mask)
        assert_close(z[:, before : before + 6] if layer.return_sequences else z, y, **EXACT)
        (z[:, before : before + 6] if layer.return_sequences else z).square().sum().backward()
        assert padded.grad.isfinite().all()
        for name, parameter in layer.named_parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_lengths_and_packed_sequences(layer, x):
    lengths = torch.tensor([6, 1])
    y = layer(x, lengths=lengths)
    packed = layer(pack_padded_sequence(x, lengths, batch_first=True))
    if not layer.return_sequences:
        assert_close(packed, y, **EXACT)
        return
    padded, _ = pad_packed_sequence(packed, batch_first=True)
    inside = torch.arange(6) < lengths[:, None]
    assert_close(padded[inside], y[inside], **EXACT)


def test_an_empty_sequence_is_zero_and_no_steps_are_an_error(layer, x):
    assert not layer(x, lengths=torch.tensor([6, 0]))[1].any()
    with pytest.raises(ValueError, match="`x` must"):
        layer(x[:, :0])


def test_derivatives(layer, x):
    names = dict(layer.named_parameters())

    def run(x, *parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x[:, :3].requires_grad_(), *names.values()), fast_mode=True)


def test_the_network_is_trained(layer, x):
    layer(x).square().sum().backward()
    used = [p for name, p in layer.named_parameters() if not name.startswith("phi.parts.3")]
    assert all(p.grad is not None and p.grad.any() for p in used)


def test_a_network_may_normalise(x):
    """Rows are steps: a batch normalisation inside φ is over steps, and fixed in evaluation."""
    layer = NeuralLS2T(3, 2, 2, phi=nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())).double()
    assert layer.phi[1].num_batches_tracked == 0  # that it was tried out has left no trace
    layer(x)
    assert layer.phi[1].num_batches_tracked == 1
    layer.eval()
    assert_close(layer(x)[:, :3], layer(x[:, :3]), **EXACT)


def test_compiles_to_one_graph(x):
    torch._dynamo.reset()
    for name in ("static", "two levels"):
        layer = build(name)
        layer.backend = "reference"
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        assert_close(compiled(x), layer(x), **EXACT)


def test_says_what_it_is():
    assert "3, 2, 3, weights='recursive', lift_order=2, features=2" in repr(build("two levels"))


class Wrong(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, rows):
        return self.result(rows)


@pytest.mark.parametrize(
    ("phi", "options", "message"),
    [
        (FCN(3, 4, return_sequences=True), {}, "`phi` must treat every step independently .* got FCN"),
        (Wrong(lambda x: []), {}, "`phi` must return vectors or at least one level"),
        (Wrong(lambda x: x[:, 0]), {}, r"`phi\(x\)` must have shape \(steps, .*got \(1,\)"),
        (Wrong(lambda x: [x, x]), {}, r"`phi\(x\)\[1\]` must have .*\(1, 3, 3\), got \(1, 3\)"),
        (
            Levels(3, 2, 2),
            {"weights": "independent"},
            "`weights` must be 'recursive' for a `phi` of 2 levels",
        ),
        (Levels(3, 2, 2), {"decay": 0.9}, "`decay` must be None for a `phi` of 2 levels, got 0.9"),
        (Levels(3, 2, 2), {"lift_order": 2}, "`lift_order` must be 1 for a `phi` of 2 levels, got 2"),
    ],
)
def test_bad_arguments(phi, options, message):
    with pytest.raises(ValueError, match=message):
        NeuralLS2T(3, 2, 2, phi=phi, **options)


def test_bad_calls():
    with pytest.raises(TypeError, match=r"`phi` must be a torch\.nn\.Module, got function"):
        NeuralLS2T(3, 2, 2, phi=lambda x: x)
    with pytest.raises(ValueError, match=r"`x` must have 3 channels \(in_features\), got 2"):
        NeuralLS2T(3, 2, 2, phi=mlp())(torch.zeros(1, 5, 2))
