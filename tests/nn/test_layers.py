import copy
import math
import pickle

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from comparison import gradients_of
from seq2tens.algebra import FreeTensor, seq2tens
from seq2tens.functional import ls2t, normalize_levels
from seq2tens.nn import LS2T, BiLS2T

EXACT = {"rtol": 1e-10, "atol": 1e-10}
OPTIONS = {
    "plain": {},
    "independent": {"weights": "independent"},
    "symmetric": {"weights": "symmetric"},
    "symmetric_lifted": {"weights": "symmetric", "lift_order": 2, "decay": 0.9, "reverse": True},
    "lifted": {"lift_order": 3, "learn_lift": True},
    "fading": {"decay": "learn"},
    "fixed_decay": {"decay": 0.9, "bias": False},
    "backwards": {"reverse": True},
    "normalised": {"normalize": True},
    "summed": {"sum_levels": True, "normalize": True},
    "summed_end": {"sum_levels": True, "return_sequences": False, "weights": "independent"},
    "end": {"return_sequences": False, "normalize": True},
}


@pytest.fixture(params=OPTIONS)
def layer(request):
    torch.manual_seed(0)
    layer = LS2T(3, 4, 3, **OPTIONS[request.param], dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer


@pytest.fixture
def x():
    return torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_is_the_function_with_its_parameters(x):
    layer = LS2T(3, 4, 3, lift_order=2, decay=0.8, dtype=torch.float64)
    direct = ls2t(
        x, layer.weight, layer.bias, order=3, lift_order=2, decay=torch.full((4,), 0.8, dtype=torch.float64)
    )
    assert_close(layer(x), direct, **EXACT)
    normal = LS2T(3, 4, 3, normalize=True, dtype=torch.float64)
    raw = ls2t(x, normal.weight, normal.bias, order=3)
    half = torch.full((3,), 0.5).double()
    steps = torch.arange(1, 7).expand(2, 6)
    assert_close(normal(x), normalize_levels(raw, half, steps), **EXACT)
    fixed = LS2T(3, 4, 3, normalize=0.7, dtype=torch.float64)
    fixed.load_state_dict({"weight": normal.weight, "bias": normal.bias})
    assert_close(fixed(x), normalize_levels(raw, half + 0.2, steps), **EXACT)
    end = LS2T(3, 4, 3, normalize=0.7, return_sequences=False, dtype=torch.float64)
    end.load_state_dict(fixed.state_dict())
    assert_close(end(x), fixed(x)[:, -1], **EXACT)


def test_shapes_and_parameters():
    assert LS2T(5, 7, 3)(torch.randn(2, 6, 5)).shape == (2, 6, 3, 7)
    assert LS2T(5, 7, 3, return_sequences=False)(torch.randn(2, 6, 5)).shape == (2, 3, 7)
    assert LS2T(5, 7, 3).weight.shape == (3, 5, 7)
    assert LS2T(5, 7, 3, weights="independent").weight.shape == (6, 5, 7)
    symmetric = LS2T(5, 7, 3, weights="symmetric")
    assert (symmetric.weight.shape, symmetric.bias.shape) == ((1, 5, 7), (1, 7))
    assert sum(p.numel() for p in LS2T(5, 7, 3, bias=False).parameters()) == 3 * 5 * 7


def test_state_continues(layer, x):
    whole, final = layer(x, return_state=True)
    first, second = (slice(4, None), slice(0, 4)) if layer.reverse else (slice(0, 4), slice(4, None))
    _, state = layer(x[:, first], return_state=True)
    y, end = layer(x[:, second], state=state, return_state=True)
    assert_close(y, whole[:, second] if layer.return_sequences else whole, **EXACT)
    assert_close(end.levels, final.levels, **EXACT)
    assert torch.equal(end.steps, final.steps)


def test_padding_either_side(layer, x):
    y = layer(x)
    for before, after in [(3, 0), (0, 2)]:
        padded = torch.nn.functional.pad(x, (0, 0, before, after), value=math.nan)
        mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
        mask[:, before : before + 6] = True
        z = layer(padded, mask)
        assert_close(z[:, before : before + 6] if layer.return_sequences else z, y, **EXACT)


def test_packed_sequences(layer):
    gen = torch.Generator().manual_seed(2)
    x = torch.randn(3, 6, 3, generator=gen, dtype=torch.float64)
    lengths = torch.tensor([4, 6, 1])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y = layer(packed)
    if not layer.return_sequences:
        assert_close(y, layer(x, lengths=lengths), **EXACT)
        return
    padded, out_lengths = pad_packed_sequence(y, batch_first=True)
    assert torch.equal(out_lengths, lengths)
    inside = torch.arange(6) < lengths[:, None]
    assert_close(padded[inside], layer(x, lengths=lengths)[inside], **EXACT)


def test_copies_agree(layer, x):
    y = layer(x)
    assert torch.equal(copy.deepcopy(layer)(x), y)
    assert torch.equal(pickle.loads(pickle.dumps(layer))(x), y)
    other = copy.deepcopy(layer)
    other.reset_parameters()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), y)


def test_gradients_reach_every_parameter(layer, x):
    layer(x).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_func_transforms_on_the_reference_path(layer, x):
    layer.backend = "reference"
    parameters = {k: v.detach() for k, v in layer.named_parameters()}

    def loss(parameters, row):
        return torch.func.functional_call(layer, parameters, (row[None],)).square().sum()

    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, row in enumerate(x):
        layer.zero_grad()
        loss(dict(layer.named_parameters()), row).backward()
        for name, parameter in layer.named_parameters():
            assert_close(grads[name][i], parameter.grad, **EXACT)


def test_vmap_over_weights_is_an_ensemble(x):
    layers = [LS2T(3, 4, 2, decay="learn", backend="reference", dtype=torch.float64) for _ in range(3)]
    stacked, _ = torch.func.stack_module_state(layers)
    run = lambda parameters: torch.func.functional_call(layers[0], parameters, (x,))  # noqa: E731
    assert_close(torch.vmap(run)(stacked), torch.stack([layer(x) for layer in layers]), **EXACT)


def test_compiles_to_one_graph(layer, x):
    torch._dynamo.reset()
    layer.backend = "reference"
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    lengths = torch.tensor([6, 3])
    assert_close(compiled(x, lengths=lengths), layer(x, lengths=lengths), **EXACT)
    grads = [
        torch.autograd.grad(f(x, lengths=lengths).sum(), list(layer.parameters())) for f in (compiled, layer)
    ]
    first, second = (gradients_of(layer, values) for values in grads)
    assert_close(first, second, **EXACT)


@pytest.mark.slow
def test_compiles_with_inductor():
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer, x = LS2T(3, 4, 2, backend="reference"), torch.randn(2, 6, 3)
    assert_close(torch.compile(layer, fullgraph=True)(x), layer(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_and_half_parameters(dtype):
    torch.manual_seed(0)
    layer, x = LS2T(3, 4, 2), torch.randn(2, 50, 3)
    with torch.autocast("cpu", dtype=dtype):
        y = layer(x)
    assert y.dtype == torch.float32
    assert_close(y, layer(x))
    small = copy.deepcopy(layer).to(dtype)(x.to(dtype))
    assert small.dtype == torch.float32
    exact = copy.deepcopy(layer).to(dtype).double()(x.to(dtype).double())
    assert_close(small.double(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("init", ["uniform", "normal"])
@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_variance_of_the_functionals_coordinates(weights, init):
    """Coordinates of ℓ_m have mean 0 and variance 2 / (d^m + width), within five standard errors."""
    features, width, order, draws = 3, 50, 3, 400
    gen = torch.Generator().manual_seed(0)
    layer = LS2T(features, width, order, weights=weights, init=init, dtype=torch.float64)
    samples = [[] for _ in range(order)]
    for _ in range(draws):
        layer.reset_parameters(gen)
        for m in range(1, order + 1):
            start = 0 if weights == "recursive" else m * (m - 1) // 2
            word = torch.randint(features, (m,), generator=gen)
            samples[m - 1].append(
                torch.stack([layer.weight[start + k, i] for k, i in enumerate(word)]).prod(0).detach()
            )
    assert (layer.bias == 0).all()
    for m, values in enumerate(samples, start=1):
        square = torch.cat(values).square()
        error = square.std() / math.sqrt(len(square))
        assert abs(square.mean() - 2 / (features**m + width)) < 5 * error


@pytest.mark.parametrize("init", ["uniform", "normal"])
def test_variance_of_symmetric_functionals_is_that_of_the_highest_level(init):
    features, width, order, draws = 3, 50, 3, 400
    gen = torch.Generator().manual_seed(0)
    layer = LS2T(features, width, order, weights="symmetric", init=init, dtype=torch.float64)
    values = []
    for _ in range(draws):
        layer.reset_parameters(gen)
        values.append(layer.weight[0].prod(0).detach())  # the coordinate 012 of z ⊗ z ⊗ z
    square = torch.cat(values).square()
    assert abs(square.mean() - 2 / (features**order + width)) < 5 * square.std() / math.sqrt(len(square))


@pytest.mark.parametrize("reverse", [False, True])
def test_symmetric_weights_are_recursive_ones_that_repeat(x, reverse):
    """Level m is then the m-th elementary symmetric polynomial of inner products: order does not count."""
    layer = LS2T(3, 4, 3, weights="symmetric", reverse=reverse, dtype=torch.float64)
    layer.bias.data.uniform_(-1, 1)
    weight, bias = layer.weight.expand(3, 3, 4), layer.bias.expand(3, 4)
    assert_close(layer(x), ls2t(x, weight, bias, order=3, reverse=reverse), **EXACT)
    end = 0 if reverse else -1
    assert_close(layer(x)[:, end], layer(x[:, [3, 1, 5, 0, 4, 2]])[:, end], **EXACT)


@pytest.mark.parametrize("options", [{}, {"return_sequences": False}, {"normalize": True}, {"reverse": True}])
def test_summed_levels(x, options):
    layer = LS2T(3, 4, 3, dtype=torch.float64, **options)
    levels = layer(x)
    layer.sum_levels = True
    assert_close(layer(x), levels.sum(-2), **EXACT)
    assert layer(x).shape == ((2, 4) if layer.return_sequences is False else (2, 6, 4))


def test_summed_levels_are_an_inner_product_with_the_full_map(x):
    layer = LS2T(3, 4, 3, sum_levels=True, return_sequences=False, bias=False, dtype=torch.float64)
    phi, y = seq2tens(x, 3), layer(x)
    for k in range(4):  # the element of rank one has level 0 too, which is 1
        element = FreeTensor.rank_one(layer.weight[:, :, k])
        assert_close(1 + y[:, k], phi.inner(element), **EXACT)


def test_gradients_of_summed_levels(x):
    layer = LS2T(3, 2, 2, sum_levels=True, normalize=True, dtype=torch.float64)
    names = dict(layer.named_parameters())
    run = lambda x, *p: torch.func.functional_call(layer, dict(zip(names, p, strict=True)), (x,))  # noqa: E731
    assert torch.autograd.gradcheck(run, (x[:, :3].requires_grad_(), *names.values()))


def test_both_directions_are_summed(x):
    assert BiLS2T(3, 4, 2, sum_levels=True, dtype=torch.float64)(x).shape == (2, 6, 8)


def test_same_generator_same_weights_without_touching_the_global_one():
    layer = LS2T(3, 4, 2)
    before = torch.get_rng_state()
    layer.reset_parameters(torch.Generator().manual_seed(5))
    first = layer.weight.clone()
    layer.reset_parameters(torch.Generator().manual_seed(5))
    assert torch.equal(layer.weight, first)
    assert torch.equal(torch.get_rng_state(), before)


def test_normalising_short_sequences_gives_no_nan():
    layer = LS2T(3, 4, 4, normalize=True, lift_order=2)
    x = torch.randn(3, 2, 3, requires_grad=True)
    y = layer(x, lengths=torch.tensor([0, 1, 2]))
    assert y.isfinite().all()
    assert (y[0] == 0).all()
    y.sum().backward()
    assert x.grad.isfinite().all()
    assert layer.exponent_logit.grad.isfinite().all()


def test_bidirectional_is_past_then_future(x):
    layer = BiLS2T(3, 4, 3, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (2, 6, 3, 8)
    assert_close(y[..., :4], layer.past(x), **EXACT)
    for i in range(6):  # the future at step i is the same functional of the steps from i on
        future = ls2t(x[:, i:], layer.future.weight, layer.future.bias, order=3, return_sequences=False)
        assert_close(y[:, i, :, 4:], future, **EXACT)
    packed = pack_padded_sequence(x, torch.tensor([6, 3]), batch_first=True)
    padded, _ = pad_packed_sequence(layer(packed), batch_first=True)
    assert_close(padded[1, :3], layer(x, lengths=torch.tensor([6, 3]))[1, :3], **EXACT)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 4, 2), {}, "`in_features` must be at least 1, got 0"),
        ((3, 0, 2), {}, "`width` must be at least 1, got 0"),
        ((3, 4, 0), {}, "`order` must be at least 1, got 0"),
        ((3, 4, 2), {"weights": "tied"}, "one of 'recursive', 'independent', 'symmetric', got 'tied'"),
        ((3, 4, 2), {"init": "zeros"}, "`init` must be one of 'uniform', 'normal', got 'zeros'"),
        ((3, 4, 2), {"learn_lift": True}, "`learn_lift` must be False for lift_order 1"),
        ((3, 4, 2), {"decay": 0.0}, r"`decay` must lie in \(0, 1\], got 0.0"),
        ((3, 4, 2), {"decay": "forget"}, "`decay` must be one of 'learn', got 'forget'"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        LS2T(*arguments, **options)


def test_bad_calls():
    layer = LS2T(3, 4, 2)
    with pytest.raises(ValueError, match=r"`x` must have 3 channels .*, got 2"):
        layer(torch.zeros(1, 5, 2))
    packed = pack_padded_sequence(torch.zeros(1, 5, 3), torch.tensor([5]), batch_first=True)
    with pytest.raises(ValueError, match="`mask` and `lengths` must be None for a PackedSequence"):
        layer(packed, lengths=torch.tensor([5]))
    with pytest.raises(ValueError, match="`reverse` must be left out"):
        BiLS2T(3, 4, 2, reverse=True)
