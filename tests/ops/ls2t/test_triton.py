"""Runs compiled where there is a GPU, and in Triton's interpreter elsewhere. The interpreter takes
milliseconds per step, hence small grids; two steps per chunk make every sequence span several chunks."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import contracts
from comparison import named
from seq2tens import ops
from seq2tens.ops.ls2t import Recursion, reference, triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="pip install 'seq2tens[triton]'"
)
LAYERS = pytest.mark.parametrize(
    ("order", "weights", "lift_order"),
    [
        (1, "recursive", 1),
        (4, "recursive", 1),
        (3, "recursive", 2),
        (3, "independent", 1),
        (4, "independent", 4),
        (3, "symmetric", 2),
    ],
)


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    """Kernels are interpreted if this is set when they are first imported; triton itself may come earlier."""
    if DEVICE == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(triton, "CHUNK", 2)


@needs_triton
class TestTriton(contracts.LS2TContract):
    backend = "triton"

    def run(self, options, **more):
        given = {**options, **more}
        moved = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        result = super().run(moved)
        return tuple(t.cpu() for t in result) if isinstance(result, tuple) else result.cpu()

    @pytest.mark.parametrize("reverse", [False, True])
    @LAYERS
    def test_equals_the_sum_over_index_tuples(self, order, weights, lift_order, reverse):
        super().test_equals_the_sum_over_index_tuples(order, weights, lift_order, reverse)

    @pytest.mark.parametrize(("weights", "reverse"), [("recursive", True), ("independent", False)])
    def test_state_continues_a_sequence(self, weights, reverse):
        super().test_state_continues_a_sequence(3, weights, 2, reverse)

    @pytest.mark.parametrize(
        ("weights", "lift_order", "reverse", "return_sequences"),
        [
            ("recursive", 1, False, True),
            ("recursive", 2, True, False),
            ("independent", 2, False, False),
            ("symmetric", 2, False, True),
        ],
    )
    @pytest.mark.slow
    def test_first_and_second_derivatives(self, weights, lift_order, reverse, return_sequences):
        super().test_first_and_second_derivatives(2, weights, lift_order, reverse, return_sequences)

    @pytest.mark.parametrize("dtype", [torch.float16])
    def test_half_precision_accumulates_wider(self, dtype):
        super().test_half_precision_accumulates_wider(dtype)


def arguments(order, weights, lift_order, *, reverse, return_sequences, plain=False, batch=7, time=5, dtype):
    """Positional arguments of a backend: 7 × 5 lanes need two programs, and no large tensor is contiguous."""
    gen = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=gen, dtype=torch.float64).to(dtype)  # noqa: E731
    chains = ops.make_chains(order, weights, reverse)
    components, states = max(chains.component) + 1, len(chains.component)
    tensors = (
        draw(batch, 3, time).mT,
        draw(5, 3, components).transpose(0, 2),
        None if plain else draw(components, 5),
        torch.tensor([1.0, 0.7, -0.3, 0.2], dtype=dtype)[:lift_order],
        None if plain else torch.linspace(0.6, 1, 5).to(dtype) ** torch.arange(order + 1)[:, None],
        None if plain else (torch.rand(time, batch, generator=gen) > 0.3).T,
        draw(states, batch, 5).transpose(0, 1),
    )
    moved = (None if t is None else t.to(DEVICE) for t in tensors)
    return *moved, chains, reverse, return_sequences


def values_and_gradients(function, given):
    tensors = [
        t.detach().requires_grad_(t.is_floating_point()) if isinstance(t, torch.Tensor) else t for t in given
    ]
    results = function(Recursion(*tensors))
    gen = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(r.shape, generator=gen, dtype=torch.float64).to(r) for r in results]
    given = zip(Recursion._fields, tensors, strict=False)
    leaves = {f"d{name}": t for name, t in given if isinstance(t, torch.Tensor) and t.requires_grad}
    gradients = torch.autograd.grad(results, list(leaves.values()), cotangents)
    return {**named("output final", results), **dict(zip(leaves, gradients, strict=True))}


def assert_equals_the_reference(given):
    found = values_and_gradients(triton.ls2t, given)
    wide = [t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in given]
    tolerance = 1e-10 if given[0].dtype == torch.float64 else 1e-4
    for name, target in values_and_gradients(reference.ls2t, wide).items():
        assert found[name].dtype == given[0].dtype
        assert_close(
            {name: found[name].double()},
            {name: target},
            rtol=tolerance,
            atol=tolerance * max(1, float(target.detach().abs().max())),
        )


@needs_triton
class TestAgainstTheReference:
    @pytest.mark.parametrize(
        ("reverse", "return_sequences", "plain", "dtype"),
        [
            (False, True, False, torch.float64),
            (False, True, False, torch.float32),
            (True, False, False, torch.float64),
            (True, True, True, torch.float32),
            (False, False, True, torch.float64),
        ],
    )
    @LAYERS
    def test_values_and_gradients(self, order, weights, lift_order, reverse, return_sequences, plain, dtype):
        given = arguments(order, weights, lift_order, reverse=reverse, return_sequences=return_sequences,
                          plain=plain, dtype=dtype)  # fmt: skip
        assert_equals_the_reference(given)

    @pytest.mark.parametrize("chunk", [1, 3, 100])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_any_chunk_size(self, monkeypatch, chunk, reverse):
        monkeypatch.setattr(triton, "CHUNK", chunk)
        given = arguments(
            2, "recursive", 2, reverse=reverse, return_sequences=True, time=7, dtype=torch.float64
        )
        assert_equals_the_reference(given)

    def test_one_step(self):
        given = arguments(
            3, "independent", 2, reverse=False, return_sequences=True, time=1, dtype=torch.float64
        )
        assert_equals_the_reference(given)

    def test_wider_programs(self, monkeypatch):
        monkeypatch.setattr(triton, "MANY_LANES", 0)
        given = arguments(2, "recursive", 1, reverse=False, return_sequences=True, dtype=torch.float32)
        assert_equals_the_reference(given)


@needs_triton
class TestTorch:
    """The operation keeps the rules of torch for custom operations."""

    @pytest.mark.parametrize(("reverse", "plain"), [(False, False), (True, True)])
    def test_opcheck(self, reverse, plain):
        sizes = {"batch": 1, "time": 3, "dtype": torch.float64}
        *tensors, chains, _, _ = arguments(
            2, "recursive", 2, reverse=reverse, return_sequences=True, plain=plain, **sizes
        )
        leaves = [t.requires_grad_() if t is not None and t.is_floating_point() else t for t in tensors]
        rest = (*map(list, chains), reverse, True, True)
        torch.library.opcheck(torch.ops.seq2tens.ls2t_triton, (*leaves, *rest))

    def test_compiles_into_one_graph(self):
        given = arguments(
            2, "recursive", 1, reverse=False, return_sequences=True, batch=1, time=3, dtype=torch.float64
        )

        def function(recursion):
            assert triton.unsupported(recursion) is None
            return triton.ls2t(recursion)

        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        assert_close(values_and_gradients(compiled, given), values_and_gradients(function, given))

    def test_autocast_does_not_lower_the_precision(self):
        given = arguments(
            2, "recursive", 1, reverse=False, return_sequences=True, batch=2, dtype=torch.float32
        )
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            found = values_and_gradients(triton.ls2t, given)
        assert_close(found, values_and_gradients(triton.ls2t, given), rtol=0, atol=0)

    def test_unwanted_derivatives_are_left_out(self):
        x, *rest = arguments(
            2, "recursive", 2, reverse=False, return_sequences=True, batch=1, dtype=torch.float64
        )
        output, _ = triton.ls2t(Recursion(x.requires_grad_(), *rest))
        target, _ = reference.ls2t(Recursion(x, *rest))
        assert_close(torch.autograd.grad(output.sum(), x), torch.autograd.grad(target.sum(), x))


COMPILE = """
from types import SimpleNamespace
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from seq2tens.ops import make_chains
from seq2tens.ops.ls2t import Recursion, triton, triton_kernels

driver.set_active(SimpleNamespace(
    get_current_target=lambda: GPUTarget("cuda", 80, 32),
    get_current_device=lambda: 0,
    get_current_stream=lambda device: 0,
))
compiled = []

class Compile:  # and do not launch
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return lambda *given, **more: compiled.append(self.kernel.warmup(*given, grid=grid, **more))

kernels = SimpleNamespace(scan=Compile(triton_kernels.scan), retrace=Compile(triton_kernels.retrace))
triton._kernels = lambda: kernels
chains = make_chains(3, "independent", True)
for dtype, full in ((torch.float32, True), (torch.float64, True), (torch.float32, False)):
    new = lambda *shape: torch.ones(shape, dtype=dtype, requires_grad=True)
    mask = torch.ones(2, 5, dtype=torch.bool)
    options = (new(6, 4), new(2), new(4, 4), mask) if full else (None, new(2).detach(), None, None)
    tensors = (new(2, 5, 3), new(6, 3, 4), *options, new(2, 6, 4))
    output, _ = triton.ls2t(Recursion(*tensors, chains, full, full))
    output.sum().backward()
assert [bool(kernel.asm["ptx"]) for kernel in compiled] == [True] * 9
"""


@pytest.mark.slow
@needs_triton
@pytest.mark.skipif(sys.platform != "linux", reason="the compiler comes with the wheels for Linux")
def test_calls_compile_for_a_gpu_without_one(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-W", "error::UserWarning", "-c", COMPILE]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def of_one_step(x, weight=None):
    """A recursion with these tensors."""
    weight = torch.zeros(1, 1, 1, device=x.device) if weight is None else weight
    chains = ops.make_chains(1, "recursive", False)
    return Recursion(x, weight, None, None, None, None, None, chains, False, True)


class TestReasons:
    def test_device_and_transforms(self, monkeypatch):
        x = torch.zeros(1, 1, 1)
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        assert triton.unsupported(of_one_step(x)) == "`x` is on cpu and TRITON_INTERPRET is not 1"
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        torch.func.vmap(lambda t: self.check_transform(x, t))(x)

    def check_transform(self, x, wrapped):
        assert "torch.func" in triton.unsupported(of_one_step(wrapped))
        assert "torch.func" in triton.unsupported(of_one_step(x, wrapped))
        return wrapped

    def test_missing_triton_names_the_pip_line(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "triton", None)
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        assert "pip install 'seq2tens[triton]'" in triton.unsupported(of_one_step(torch.zeros(1, 1, 1)))
        given = arguments(1, "recursive", 1, reverse=False, return_sequences=True, dtype=torch.float64)
        with pytest.raises(ImportError, match=r"pip install 'seq2tens\[triton\]'"):
            triton.ls2t(Recursion(*given))

    @needs_triton
    def test_none_if_it_can_run(self):
        assert triton.unsupported(of_one_step(torch.zeros(1, 1, 1, device=DEVICE))) is None
