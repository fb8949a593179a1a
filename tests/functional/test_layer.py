import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import forward_ad
from torch.testing import assert_close

from comparison import gradients_of
from contracts import EXACT, problem
from seq2tens._checks import ArgumentError
from seq2tens.functional import PrefixLS2T, ls2t, normalize_levels, sliding_ls2t
from seq2tens.nn import LS2T, DeepLS2T
from seq2tens.ops.batch_norm import Settings, batch_norm

BAD_VALUES = [
    ({"x": torch.zeros(2, 5)}, r"`x` must have 3 axes \(batch, time, channels\), got 2 with shape \(2, 5\)"),
    ({"x": torch.zeros(2, 5, 4)}, "`x` must have 3 channels .*, got 4"),
    ({"x": torch.zeros(0, 5, 3)}, "`x` must hold at least one sequence, got an empty batch"),
    ({"x": torch.zeros(2, 0, 3)}, "`x` must have at least one time step, got an empty time axis"),
    ({"order": 0}, "`order` must be at least 1, got 0"),
    ({"lift_order": 0}, "`lift_order` must be at least 1, got 0"),
    ({"weights": "shared"}, "`weights` must be one of 'recursive', 'independent', 'symmetric', got 'shared'"),
    ({"weight": torch.zeros(2, 3)}, "`weight` must have 3 axes"),
    (
        {"weight": torch.zeros(3, 3, 2)},
        "`weight` must have 2 components for recursive weights of order 2, got 3",
    ),
    ({"weight": torch.zeros(2, 3, 0)}, r"`weight` must have a width of at least 1, got shape \(2, 3, 0\)"),
    ({"bias": torch.zeros(2)}, r"`bias` must have shape \(components, width\) = \(2, 2\), got \(2,\)"),
    ({"lift_coefficients": torch.ones(2)}, r"`lift_coefficients` must have shape \(lift_order,\) = \(1,\)"),
    ({"decay": torch.ones(3)}, r"`decay` must have shape \(width,\) = \(2,\), got \(3,\)"),
    ({"decay": torch.tensor([0.5, 1.5])}, r"`decay` must lie in \(0, 1\], got 1.5 at index 1"),
    (
        {"mask": torch.ones(2, 4, dtype=torch.bool)},
        r"`mask` must have shape \(batch, time\) = \(2, 5\), got \(2, 4\)",
    ),
    (
        {"lengths": torch.tensor([1, 6])},
        r"`lengths` must lie in 0..5 \(the time axis of `x`\), got 6 at index 1",
    ),
    ({"lengths": torch.tensor([-1, 5])}, "got -1 at index 0"),
    ({"lengths": torch.tensor([5])}, r"`lengths` must have shape \(batch,\) = \(2,\), got \(1,\)"),
    ({"state": torch.zeros(2, 3, 2)}, r"`state` must have shape .* = \(2, 2, 2\), got \(2, 3, 2\)"),
    ({"backend": "gpu"}, "`backend` must be one of .*, got 'gpu'"),
]
BAD_TYPES = [
    ({"x": torch.zeros(2, 5, 3, dtype=torch.long)}, "`x` must have a floating-point dtype, got torch.int64"),
    ({"x": [[1.0]]}, "`x` must be a torch.Tensor, got list"),
    ({"order": 2.0}, "`order` must be an integer, got float"),
    ({"mask": torch.ones(2, 5)}, "`mask` must be boolean .*, got torch.float32"),
    ({"lengths": torch.ones(2)}, "`lengths` must be integers, got torch.float32"),
]


def options(**changes):
    plain = problem(2, "recursive", 1, dtype=torch.float32)
    return {**plain, **changes}


@pytest.mark.parametrize(("changes", "message"), BAD_VALUES)
def test_wrong_values(changes, message):
    with pytest.raises(ValueError, match=message):
        ls2t(**options(**changes))


@pytest.mark.parametrize(("changes", "message"), BAD_TYPES)
def test_wrong_types(changes, message):
    with pytest.raises(TypeError, match=message):
        ls2t(**options(**changes))


@given(
    cuts=st.lists(st.integers(1, 11), max_size=4, unique=True),
    order=st.integers(1, 4),
    weights=st.sampled_from(["recursive", "independent"]),
    lift_order=st.integers(1, 3),
    reverse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_cutting_into_chunks_gives_one_result(cuts, order, weights, lift_order, reverse, seed):
    layer = problem(order, weights, lift_order, time=12, seed=seed)
    mask = torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)) < 0.8
    whole, end = ls2t(**layer, mask=mask, reverse=reverse, return_state=True)
    bounds = [0, *sorted(cuts), 12]
    pieces = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    state = None
    for piece in reversed(pieces) if reverse else pieces:
        part = {**layer, "x": layer["x"][:, piece], "mask": mask[:, piece]}
        y, state = ls2t(**part, reverse=reverse, state=state, return_state=True)
        assert_close(y, whole[:, piece], **EXACT)
    assert_close(state, end, **EXACT)


def test_mask_and_lengths_are_joined():
    layer = problem(3, "recursive", 1)
    mask = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 0, 1]], dtype=torch.bool)
    lengths = torch.tensor([3, 5])
    both = mask & (torch.arange(5) < lengths[:, None])
    assert_close(ls2t(**layer, mask=mask, lengths=lengths), ls2t(**layer, mask=both), **EXACT)


def test_normalising_counts_terms():
    """With all inner products 1, level m counts its terms, so exponent 1 gives 1 and exponent 0 nothing."""
    y = ls2t(torch.ones(1, 8, 1).double(), torch.ones(3, 1, 1).double(), order=3)
    counts = torch.arange(1, 9)[None]
    ones = normalize_levels(y, torch.ones(3).double(), counts)
    for m in (1, 2, 3):
        assert_close(ones[0, m - 1 :, m - 1, 0], torch.ones(9 - m).double(), **EXACT)
        assert (ones[0, : m - 1, m - 1] == 0).all()
    assert_close(normalize_levels(y, torch.zeros(3).double(), counts), y, **EXACT)
    assert normalize_levels(y, torch.ones(3).double(), torch.zeros(1, 8).long()).isfinite().all()


@pytest.mark.parametrize("name", ["weight", "bias", "lift_coefficients", "decay", "mask", "state"])
def test_tensors_on_two_devices(name):
    given = options(mask=torch.ones(2, 5, dtype=torch.bool), state=torch.zeros(2, 2, 2))
    given[name] = given[name].to("meta")
    with pytest.raises(ArgumentError, match=f"`{name}` must be on the device of `x`, cpu, got meta"):
        ls2t(**given)


def test_a_layer_on_another_device_than_its_input():
    with torch.device("meta"):
        layer, deep = LS2T(3, 16, 2), DeepLS2T(3, 16)
    for module in (layer, deep, deep.eval()):
        with pytest.raises(ArgumentError, match=r"must be on the device of `x`, cpu, got meta"):
            module(torch.zeros(4, 50, 3))


FORWARD_MODE = {
    "ls2t": lambda x, weight: ls2t(x, weight, order=2),
    "sliding_ls2t": lambda x, weight: sliding_ls2t(x, 7, weight, order=2),
    "PrefixLS2T": lambda x, weight: PrefixLS2T(x, weight, order=2)(
        torch.tensor([0, 3, 9]), torch.tensor([70, 60, 12])
    ),
    "batch_norm": lambda x, weight: batch_norm(x, None, None, weight[0, 0, :3], None, Settings(1e-3)),
}


@pytest.mark.parametrize("function", FORWARD_MODE.values(), ids=FORWARD_MODE)
@pytest.mark.parametrize("by", [0, 1])
def test_forward_mode_differentiation(function, by, generator):
    x, weight = torch.randn(2, 70, 3, generator=generator).double(), torch.randn(2, 3, 4, generator=generator)
    values = [x, weight.double()]
    tangent = torch.randn(values[by].shape, generator=generator).double()
    moved = lambda step: [v + step * tangent if i == by else v for i, v in enumerate(values)]  # noqa: E731
    expected = (function(*moved(1e-4)) - function(*moved(-1e-4))) / 2e-4
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(v, tangent) if i == by else v for i, v in enumerate(values)]
        found = forward_ad.unpack_dual(function(*duals)).tangent
    assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit.trace:DeprecationWarning")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "make",
    [lambda: LS2T(3, 16, 2), lambda: LS2T(3, 4, 3, lift_order=2, reverse=True), lambda: DeepLS2T(3, 16)],
)
def test_a_traced_layer_computes(make, training, generator):
    torch.manual_seed(0)
    layer = make().train(training)
    first, second = (torch.randn(2, 70, 3, generator=generator) for _ in range(2))
    traced = torch.jit.trace(layer, (first,))
    assert_close(traced(second), layer(second))
    gradients = [torch.autograd.grad(f(second).sum(), list(layer.parameters())) for f in (traced, layer)]
    first, second = (gradients_of(layer, values) for values in gradients)
    assert_close(first, second, rtol=1e-4, atol=1e-4)


def test_no_features_leave_the_bias():
    bias = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = ls2t(torch.zeros(1, 3, 0), torch.zeros(2, 0, 2), bias, order=2)
    assert_close(y[0, :, 0], torch.arange(1, 4)[:, None] * bias[0])
    assert_close(y[0, -1, 1], 3 * bias[0] * bias[1])


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("decay", [0.5, 0.99, 0.9999, 0.999999])
def test_decay_in_single_precision(backend, decay, generator):
    """A rate near 1 is rounded once, and not at every power."""
    x, weight = torch.rand(1, 100_000, 2, generator=generator) / 100, torch.rand(3, 2, 4, generator=generator)
    rate = torch.full((4,), decay)
    rates = [rate.clone().requires_grad_(), rate.double().requires_grad_()]
    single = ls2t(x, weight, order=3, decay=rates[0], backend=backend)
    double = ls2t(x.double(), weight.double(), order=3, decay=rates[1], backend=backend)
    scale = double.detach().abs().amax(1, keepdim=True)
    assert float(((single.detach() - double.detach()).abs() / scale).max()) < 2e-6
    (found,), (expected,) = (
        torch.autograd.grad(y[:, -1].sum(), rate) for y, rate in zip((single, double), rates, strict=True)
    )
    assert_close(found.double(), expected, rtol=1e-5, atol=0)
