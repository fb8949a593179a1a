"""The fused CPU path: the contract, and what torch asks of a custom operation."""

import os
import subprocess
import sys
import weakref

import pytest
import torch
from torch.testing import assert_close

import contracts
from comparison import gradients_of, named
from contracts import EXACT, problem
from seq2tens import ops
from seq2tens.functional import ls2t, state_functionals
from seq2tens.nn import LS2T
from seq2tens.ops import Chains, dispatch, make_chains
from seq2tens.ops.ls2t import cpu, reference


class TestCPU(contracts.FastPathContract):
    backend = "cpu"


def tensors(order=3, weights="recursive", lift_order=1, **sizes):
    options = problem(order, weights, lift_order, **sizes)
    return [options[k].requires_grad_() for k in ("x", "weight", "bias", "lift_coefficients")]


@pytest.mark.parametrize("return_sequences", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_opcheck(return_sequences, keep):
    chains = make_chains(3, "recursive", False)
    x, weight, bias, coefficients = tensors(time=70)
    if not keep:
        x, weight, bias, coefficients = (t.detach() for t in (x, weight, bias, coefficients))
    powers = torch.linspace(0.5, 0.9, 2).double() ** torch.arange(4)[:, None]
    mask = torch.rand(2, 70, generator=torch.Generator().manual_seed(0)) < 0.8
    for p, m in [(None, None), (powers, mask)]:
        state = torch.zeros(2, 3, 2).double()
        arguments = (x, weight, bias, coefficients, p, m, state, *chains, False, return_sequences, keep)
        torch.library.opcheck(torch.ops.seq2tens.ls2t.default, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_and_export_through_the_operation(dynamic):
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer, x = LS2T(3, 4, 2, dtype=torch.float64), torch.randn(2, 70, 3).double()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert_close(compiled(x), layer(x), **EXACT)
    grads = [torch.autograd.grad(f(x).square().sum(), list(layer.parameters())) for f in (compiled, layer)]
    first, second = (gradients_of(layer, values) for values in grads)
    assert_close(first, second, **EXACT)
    exported = torch.export.export(layer, (x,))
    assert "seq2tens.ls2t" in str(exported.graph)
    assert_close(exported.module()(x), layer(x), **EXACT)


def test_vmap_and_hessian_with_the_automatic_choice():
    torch.manual_seed(0)
    layer, x = LS2T(3, 4, 2, return_sequences=False, dtype=torch.float64), torch.randn(5, 6, 3).double()
    assert_close(torch.vmap(lambda row: layer(row[None])[0])(x), layer(x), **EXACT)
    flat = lambda w: ls2t(x, w, order=2, return_sequences=False).square().sum()  # noqa: E731
    hessian = torch.func.hessian(flat)(layer.weight.detach())
    assert_close(hessian, torch.autograd.functional.hessian(flat, layer.weight.detach()), **EXACT)


@pytest.mark.parametrize(
    "chains",
    [
        Chains((0, 1), (-1, -1), (0, 1)),  # two words of one letter, which look like one chain
        Chains((0, 0), (-1, 0), (0, 1)),  # a letter twice, and one that no word uses
        Chains((0, 2), (-1, 0), (0, 1)),  # a letter in between that no word uses
        Chains((2, 0, 1, 1), (-1, 0, 0, 2), (1, 3, 0)),  # a tree, levels in any order
    ],
)
def test_any_set_of_chains(chains):
    x, weight, bias, _ = tensors(3, batch=3, time=80, features=4, width=16)
    components = max(2, max(chains.component) + 1)
    results = []
    for backend in ("reference", "cpu"):
        leaves = [
            x,
            weight[:components].detach().requires_grad_(),
            bias[:components].detach().requires_grad_(),
        ]
        y, final = ops.Functionals(*leaves[1:], None, None, chains, backend=backend).run(leaves[0] / 9, None)
        weights = torch.linspace(-1, 1, y.numel()).double().reshape(y.shape)
        grads = torch.autograd.grad((y * weights).sum() + final.square().sum(), leaves)
        results.append(named("y final dx dweight dbias", [y, final, *grads]))
    assert_close(results[1], results[0], **EXACT)


@pytest.mark.parametrize("result", [0, 1], ids=["levels", "state"])
def test_derivatives_of_one_result_alone(result):
    x, weight, bias, _ = tensors(3, batch=2, time=5, features=2, width=3)

    def run(x, weight, bias, backend="cpu"):
        return ls2t(x, weight, bias, order=3, return_state=True, backend=backend)[result]

    leaves = (x, weight, bias)
    pairs = zip(
        *(torch.autograd.grad(run(*leaves, b).sin().sum(), leaves) for b in ("reference", "cpu")), strict=True
    )
    for expected, found in pairs:
        assert_close(found, expected, **EXACT)
    assert torch.autograd.gradgradcheck(run, leaves)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "sizes", [(5, 600, 32), (1, 600, 32), (3, 40, 64), (20, 9, 16), (2, 300, 80), (1, 1, 16), (1, 900, 208)]
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-4)])
def test_one_chain_in_whole_vectors(sizes, masked, order, dtype, tolerance):
    """Its states are the output: scanned in place a level at a time, and read again by the backward pass."""
    (batch, time, width), generator = sizes, torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator).to(dtype)  # noqa: E731
    leaves = [
        draw(batch, time, 7) / 20,
        draw(order, 7, width) / 3,
        draw(order, width) / 50,
        draw(batch, order, width),
    ]
    mask = torch.rand(batch, time, generator=generator) < 0.7 if masked else None
    dout, dfinal = draw(batch, time, order, width), draw(batch, order, width)
    results = []
    for backend in ("reference", "cpu"):
        x, weight, bias, state = leaves = [t.detach().requires_grad_() for t in leaves]
        y, final = ls2t(
            x, weight, bias, order=order, mask=mask, state=state, return_state=True, backend=backend
        )
        grads = torch.autograd.grad([y, final], leaves, [dout, dfinal])
        results.append([y.detach(), final.detach(), *grads])
    for expected, found in zip(*results, strict=True):
        assert float((found - expected).abs().max()) <= tolerance * float(expected.abs().max())


def test_results_that_no_cache_holds():
    """Large outputs are written past the caches: in groups of functionals, or from rows elsewhere."""
    generator = torch.Generator().manual_seed(0)
    for batch, time, width in [(1, 70_000, 32), (4, 70_000, 64)]:
        x = torch.randn(batch, time, 2, generator=generator) / 1000
        weight = torch.randn(2, 2, width, generator=generator)
        whole = ls2t(x, weight, order=2, backend="cpu")
        ends = [
            ls2t(x[:, :n], weight, order=2, return_sequences=False, backend="cpu") for n in (1, 999, time)
        ]
        assert_close(whole[:, [0, 998, time - 1]], torch.stack(ends, 1), rtol=1e-5, atol=1e-6)


def test_forced_backend_says_why_it_cannot_run():
    x, weight, *_ = tensors()
    run = lambda row: ls2t(row[None], weight, order=3, backend="cpu")  # noqa: E731
    with pytest.raises(RuntimeError, match=r"`backend` 'cpu' cannot run here: .* torch.func"):
        torch.vmap(run)(x)
    with pytest.raises(RuntimeError, match="`backend` 'cpu' cannot run here: a tensor is on meta"):
        ls2t(x.to("meta"), weight.to("meta"), order=3, backend="cpu")


@pytest.mark.parametrize("shape", [(1, 9000, 8), (5, 2000, 8), (40, 300, 8), (60, 20, 40)])
@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_same_bits_whatever_the_number_of_threads(shape, weights):
    batch, time, features = shape
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        leaves = tensors(3, weights, batch=batch, time=time, features=features, width=32)
        leaves = [t.detach().float().requires_grad_() for t in leaves]
        y = ls2t(*leaves[:3], order=3, weights=weights, backend="cpu")
        results.append([y, *torch.autograd.grad(y.square().mean(), leaves[:3])])
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("differenced", [True, False])
def test_float32_over_a_million_steps(differenced):
    gen = torch.Generator().manual_seed(0)
    x = torch.rand(1, 10**6, 3, generator=gen) / 1000
    if differenced:
        x = x - 1 / 2000
    weight = torch.rand(3, 3, 4, generator=gen)
    single = ls2t(x, weight, order=3, backend="cpu").double()
    double = ls2t(x.double(), weight.double(), order=3, backend="cpu")
    scale = double.abs().amax(1, keepdim=True)
    assert float(((single - double).abs() / scale).max()) < 1e-6
    leaf = weight.clone().requires_grad_()
    ls2t(x, leaf, order=3, backend="cpu")[:, -1].sum().backward()
    exact = weight.double().requires_grad_()
    ls2t(x.double(), exact, order=3, backend="cpu")[:, -1].sum().backward()
    assert float((leaf.grad.double() - exact.grad).abs().max() / exact.grad.abs().max()) < 1e-5


def test_works_in_a_forked_process():
    code = """
import os, torch
from seq2tens.functional import ls2t, state_functionals
torch.set_num_threads(2)
x, w = torch.randn(8, 3000, 16), torch.randn(2, 16, 32)
y = ls2t(x, w, order=2, backend="cpu")
pid = os.fork()
if pid == 0:
    child = ls2t(x, w, order=2, backend="cpu")
    os._exit(0 if (child.numpy() == y.numpy()).all() else 1)  # torch itself may hang after a fork
print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )
    assert result.stdout.strip() == "child 0", result.stderr


def test_a_call_may_come_from_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    torch.set_num_threads(2)
    x, weight, bias, _ = (t.detach() for t in tensors(batch=8, time=2000, features=8, width=32))
    expected = ls2t(x, weight, bias, order=3)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(ls2t, x, weight, bias, order=3) for _ in range(12)]
        assert all(torch.equal(f.result(), expected) for f in futures)
    torch.set_num_threads(1)


@pytest.mark.parametrize(("time", "width"), [(1, 16), (9, 16), (40, 64), (300, 5), (700, 208)])
def test_a_sequence_has_the_same_bits_alone_and_in_a_batch(time, width):
    x, weight, bias, _ = (t.detach().float() for t in tensors(batch=7, time=time, features=9, width=width))
    for lengths in (torch.full((7,), time), torch.arange(1, 8).clamp(max=time)):
        y = ls2t(x, weight, bias, order=3, lengths=lengths)
        for i in range(7):
            alone = ls2t(x[i : i + 1], weight, bias, order=3, lengths=lengths[i : i + 1])
            assert torch.equal(alone[0], y[i])


def prepared(x, **options):
    """Functionals with these options, prepared by the kernels and by the reference."""
    functionals = state_functionals(x, **options)
    recursion = functionals.recursion(x, None)
    assert dispatch.choose("ls2t_prepared", None, recursion) is cpu.prepare
    return functionals, cpu.prepare(recursion), reference.prepare(recursion)


@pytest.mark.parametrize("weights", ["recursive", "independent"])
@pytest.mark.parametrize(("lift_order", "decay"), [(1, None), (2, None), (1, 0.9)])
def test_prepared_functionals_give_the_same_bits(weights, lift_order, decay):
    options = problem(3, weights, lift_order, time=7)
    x, width = options.pop("x"), options["weight"].shape[2]
    chosen = {name: options[name] for name in ("weight", "bias", "order", "weights", "lift_order")}
    decay = None if decay is None else torch.full((width,), decay).double()
    functionals, by_kernel, by_reference = prepared(x, **chosen, decay=decay)
    mask = torch.rand(x.shape[:2], generator=torch.Generator().manual_seed(0)) < 0.7
    _, state = functionals.run(x, mask)
    for part in (x, x[:, :1], x[:1]):
        arguments = (part, mask[: len(part), : part.shape[1]], state[: len(part)])
        for name, a, b, c in zip(
            ("states", "final"),
            by_kernel(*arguments),
            functionals.run(*arguments),
            by_reference(*arguments),
            strict=True,
        ):
            assert torch.equal(a, b), name
            assert_close(a, c, **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_prepared_functionals_do_not_keep_the_sequences_alive():
    x, layer = torch.zeros(2, 3, 4), LS2T(4, 5, 2)
    alive = weakref.ref(x)
    run = state_functionals(x, **layer.functionals()).prepare(x)
    del x
    assert alive() is None
    assert run(torch.zeros(1, 2, 4), None, None)[0].shape == (1, 2, 2, 5)


def test_prepared_functionals_refuse_other_channels():
    x, layer = torch.zeros(2, 3, 4), LS2T(4, 5, 2)
    _, by_kernel, _ = prepared(x, **layer.functionals())
    with pytest.raises(ValueError, match="`x` must have 4 channels"):
        by_kernel(x[..., :2], None, None)
