"""Batch normalisation over the rows that count: the kernels against their definition."""

import pytest
import torch
from torch.testing import assert_close

from comparison import named
from contracts import EXACT
from seq2tens.ops.batch_norm import Running, Settings, batch_norm, cpu, reference

SHAPES = [((30, 5), None), ((70, 10, 128), None), ((40, 100, 2, 64), 64), ((1, 3, 4), 4), ((9, 3, 1), 1)]


def problem(shape, inner, masked=True, affine=True, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *sizes: torch.randn(*sizes, generator=generator).to(dtype)  # noqa: E731
    channel_axis = -1 if inner is None else -2
    channels = shape[channel_axis]
    mask = torch.rand(shape[:channel_axis], generator=generator) < 0.7 if masked else None
    leaves = [draw(*shape) * 3 + 1, *((draw(channels), draw(channels)) if affine else ())]
    return [t.requires_grad_() for t in leaves], mask, draw(*shape)


def run(function, leaves, mask, gradient, settings):
    x, weight, bias = leaves if len(leaves) == 3 else (*leaves, None, None)
    mean, variance = (x.detach().new_zeros(settings.channels(x.shape)) for _ in range(2))
    y = function(x, mask, weight, bias, Running(mean, variance, 1.0), settings)  # of this batch alone
    gradients = torch.autograd.grad(y, leaves, gradient)
    return named("y mean variance dx dweight dbias", [y, mean, variance, *gradients])


@pytest.mark.parametrize(("shape", "inner"), SHAPES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_kernel_agrees_with_the_definition(shape, inner, masked, affine):
    given = *problem(shape, inner, masked, affine), Settings(1e-3, inner)
    assert cpu.unsupported(*given[0]) is None
    assert_close(run(batch_norm, *given), run(reference.batch_norm, *given), **EXACT)


def test_derivatives():
    (x, weight, bias), mask, _ = problem((6, 2, 3), 3)
    settings = Settings(1e-3, 3)
    values = lambda *leaves: batch_norm(leaves[0], mask, *leaves[1:], None, settings)  # noqa: E731
    assert torch.autograd.gradcheck(values, (x, weight, bias))
    assert torch.autograd.gradgradcheck(values, (x, weight, bias))


def test_parts_of_other_tensors():
    """Weight and bias may be strided, or one number in place of many; rows may begin anywhere."""
    (x, *_), mask, gradient = problem((40, 100, 3), None, dtype=torch.float32)
    settings, columns = Settings(1e-3), torch.linspace(-1, 1, 9).reshape(3, 3)
    for weight, bias in [
        (columns[:, 1], columns[:, 2]),
        (columns[0, :1].expand(3), columns[1:, 0][:1].expand(3)),
    ]:
        parts, copies = ([x.detach(), weight, bias] for _ in range(2))
        results = []
        for leaves in (parts, [t.clone(memory_format=torch.contiguous_format) for t in copies]):
            leaves = [t.detach().requires_grad_() for t in leaves]
            results.append(run(batch_norm, leaves, mask, gradient, settings))
        assert_close(results[0], results[1], rtol=0, atol=0)


def test_rows_that_do_not_count_do_not_matter():
    (x, weight, bias), mask, _ = problem((50, 4), None)
    y = batch_norm(x, mask, weight, bias, None, Settings(1e-3))
    other = torch.where(mask[:, None], x, 1e6)
    assert torch.equal(batch_norm(other, mask, weight, bias, None, Settings(1e-3)), y)
    assert not y[~mask].any()


def test_same_bits_whatever_the_number_of_threads():
    given = *problem((3000, 64), None, dtype=torch.float32), Settings(1e-3)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(run(batch_norm, *given))
    torch.set_num_threads(1)
    for other in results[1:]:
        assert_close(results[0], other, rtol=0, atol=0)


def test_tensors_with_gaps():
    (x, weight, bias), mask, gradient = problem((30, 10), None)
    wide = [t.detach().repeat_interleave(2, 0)[::2].requires_grad_() for t in (x, weight, bias)]
    gaps = mask.repeat_interleave(3)[::3], gradient.repeat_interleave(2, 1)[:, ::2]
    settings = Settings(1e-3)
    assert not any(t.is_contiguous() for t in (*wide, *gaps))
    expected = run(reference.batch_norm, (x, weight, bias), mask, gradient, settings)
    assert_close(run(batch_norm, wide, *gaps, settings), expected, **EXACT)


def test_float32_statistics_are_those_of_doubles():
    (x,), mask, gradient = problem((40_000, 3), None, affine=False, dtype=torch.float32)
    given = [x.detach() + 100], mask, gradient
    wide = [(x.detach() + 100).double()], mask, gradient.double()
    narrow, exact = (
        run(f, [t.requires_grad_() for t in leaves], *rest, Settings(1e-3))
        for f, (leaves, *rest) in ((batch_norm, given), (reference.batch_norm, wide))
    )
    for name in ("mean", "variance"):
        assert_close({name: narrow[name].double()}, {name: exact[name]}, rtol=1e-6, atol=0)


def test_transforms_and_empty_batches_take_the_definition():
    (x, weight, bias), mask, _ = problem((8, 3), None)
    flat = lambda t: batch_norm(t, mask, weight, bias, None, Settings(1e-3)).square().sum()  # noqa: E731
    assert_close(torch.func.grad(flat)(x.detach()), torch.autograd.grad(flat(x), x)[0], **EXACT)
    assert batch_norm(x[:0], None, weight, bias, None, Settings(1e-3)).shape == (0, 3)
    scale = lambda w: batch_norm(x.detach(), mask, w, bias.detach(), None, Settings(1e-3))  # noqa: E731
    _, tangent = torch.func.jvp(scale, (weight.detach(),), (torch.ones_like(weight),))
    assert_close(tangent, scale(weight + 1) - scale(weight), **EXACT)
    plain = lambda t: batch_norm(t, None, None, None, None, Settings(1e-3))  # noqa: E731
    with pytest.warns(DeprecationWarning, match="trace"):
        traced = torch.jit.trace(plain, x.detach())
    assert_close(traced(x.detach().square()), plain(x.detach().square()), **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_running_statistics_follow_those_of_the_batch(dtype):
    (x, *_), mask, _ = problem((40, 6, 3), None, dtype=dtype)
    results = []
    for function in (batch_norm, reference.batch_norm):
        running = Running(torch.full((3,), 2.0, dtype=dtype), torch.full((3,), 5.0, dtype=dtype), 0.25)
        function(x.detach(), mask, None, None, running, Settings(1e-3))
        results.append(running)
    rows = x.detach()[mask]
    assert_close(results[0].mean, 0.75 * 2 + 0.25 * rows.mean(0))
    assert_close(results[0].variance, 0.75 * 5 + 0.25 * rows.var(0, unbiased=False))
    assert_close(results[0], results[1])


def test_running_statistics_that_are_parts_of_others_take_the_definition():
    (x, *_), mask, _ = problem((40, 3), None)
    columns = torch.zeros(3, 2, dtype=torch.float64)
    running = Running(columns[:, 0], columns[:, 1], 1.0)
    assert "not contiguous" in cpu.unsupported(x, mask, None, None, running)
    batch_norm(x.detach(), mask, None, None, running, Settings(1e-3))
    assert_close(columns[:, 0], x.detach()[mask].mean(0), **EXACT)
