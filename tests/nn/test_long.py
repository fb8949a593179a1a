import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from comparison import gradients_of
from contracts import EXACT
from seq2tens.nn import (
    FCN,
    FCNLS2T,
    LS2T,
    DeepLS2T,
    Difference,
    LS2TBlock,
    ResNet,
    checkpoint_chunks,
    chunkwise,
    time_chunks,
)

MODULES = {
    "end point": lambda: LS2T(3, 4, 3, return_sequences=False),
    "layer": lambda: LS2T(3, 4, 2, weights="independent", normalize=True, decay="learn", lift_order=2),
    "block": lambda: LS2TBlock(3, 4, 2, difference=False, norm=False),
    "deep": lambda: DeepLS2T(3, 4, depth=3, order=2),
    "resnet": lambda: ResNet(3, (2, 3)),
    "fcn-ls2t": lambda: FCNLS2T(3, 3, 4, 2, 2, time_embedding=False),
    "sequential": lambda: torch.nn.Sequential(Difference(), LS2T(3, 4, 2), torch.nn.Flatten(2)),
    "deep path": lambda: DeepLS2T(3, 4, depth=2, order=3, time=None, return_sequences=True),
}


def draw(time, seed=0):
    gen = torch.Generator().manual_seed(seed)
    return torch.randn(2, time, 3, generator=gen, dtype=torch.float64) / 8


@pytest.fixture(params=MODULES)
def module(request):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = MODULES[request.param]().double().eval()
    for name, tensor in module.named_buffers():
        if name.endswith("running_mean"):
            tensor.add_(0.3)
    return module


def gradients(y, x, module):
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
    return torch.autograd.grad((y * weights).sum(), [x, *module.parameters()])


def result(module, outputs):
    """One output of a whole sequence from those of its chunks."""
    sequences = getattr(module, "return_sequences", not isinstance(module, FCN | FCNLS2T | ResNet))
    return torch.cat(outputs, dim=1) if sequences else outputs[-1]


@pytest.mark.parametrize("steps", [1, 7, 50, 60])
def test_chunks_give_the_values_and_gradients_of_one_call(module, steps):
    x = draw(50).requires_grad_()
    y = module(x)
    outputs, _ = checkpoint_chunks(module, time_chunks(x, steps))
    assert len(outputs) == -(-50 // steps)
    found = result(module, outputs)
    assert_close(found, y, **EXACT)
    (dx, *found), (expected_dx, *expected) = gradients(found, x, module), gradients(y, x, module)
    assert_close({"dx": dx}, {"dx": expected_dx}, **EXACT)
    assert_close(gradients_of(module, found), gradients_of(module, expected), **EXACT)


@given(cuts=st.lists(st.integers(1, 29), max_size=5, unique=True), seed=st.integers(0, 10**6))
def test_any_cutting(cuts, seed):
    network = DeepLS2T(3, 2, depth=2, order=2).double().eval()
    x = draw(30, seed)
    bounds = [0, *sorted(cuts), 30]
    chunks = [x[:, a:b] for a, b in itertools.pairwise(bounds)]
    with torch.no_grad():
        outputs, _ = checkpoint_chunks(network, chunks)
        assert_close(outputs[-1], network(x), **EXACT)


def test_a_state_goes_on(module):
    x = draw(40)
    outputs, state = checkpoint_chunks(module, time_chunks(x[:, :24], 10))
    more, _ = checkpoint_chunks(module, time_chunks(x[:, 24:], 5), state=state)
    assert_close(result(module, outputs + more), module(x), **EXACT)


def test_files_and_generators(tmp_path):
    layer = LS2T(3, 4, 2, return_sequences=False).double()
    x = draw(40)
    target = torch.autograd.grad(layer(x).square().sum(), layer.weight)
    np.save(tmp_path / "x.npy", x.numpy())
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    sources = [
        time_chunks(on_disk, 7),
        (part for part in x.split(7, dim=1)),
        [np.ascontiguousarray(x[:, a : a + 7]) for a in range(0, 40, 7)],
    ]
    for source in sources:
        outputs, _ = checkpoint_chunks(layer, source)
        assert_close(torch.autograd.grad(outputs[-1].square().sum(), layer.weight), target, **EXACT)


def test_chunks_are_read_again_and_not_kept():
    layer = LS2T(3, 4, 2, return_sequences=False).double()
    x = draw(40)

    read = []

    class Reader:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            read.append(index)
            return x[:, 10 * index : 10 * index + 10].clone()

    outputs, _ = checkpoint_chunks(layer, Reader())
    assert read == [0, 1, 2, 3]
    outputs[-1].sum().backward()
    assert read == [0, 1, 2, 3, 3, 2, 1, 0]


def test_losses_of_chunks():
    """A function of chunk and state, whose chunks are pairs and whose output is a loss."""
    layer = LS2T(3, 4, 2).double()
    x, target = draw(30), draw(30, seed=1)[..., :1]

    def step(chunk, state):
        y, state = layer(chunk[0], state=state, return_state=True)
        return (y[:, :, 0, :1] - chunk[1]).square().sum(), state

    pairs = list(zip(x.split(8, dim=1), target.split(8, dim=1), strict=True))
    losses, _ = checkpoint_chunks(step, pairs)
    expected = (layer(x)[:, :, 0, :1] - target).square().sum()
    assert_close(sum(losses), expected, **EXACT)
    (dweight,), (target,) = (torch.autograd.grad(loss, layer.weight) for loss in (sum(losses), expected))
    assert_close(dweight, target, **EXACT)


@pytest.mark.parametrize("every", [1, 2])
def test_truncated_gradients(every):
    """The gradient that is left is that of the chunks since the state was last detached."""
    layer = LS2T(3, 4, 3).double()
    x = draw(25)
    outputs, _ = checkpoint_chunks(layer, time_chunks(x, 5), truncate=every)
    losses = [y.square().sum() for y in outputs]
    found = torch.autograd.grad(sum(losses), layer.weight)[0]
    expected, state = torch.zeros_like(found), None
    for begin in range(0, 25, 5 * every):
        y, state = layer(x[:, begin : begin + 5 * every], state=state, return_state=True)
        expected += torch.autograd.grad(y.square().sum(), layer.weight)[0]
        state = state.detach()
    assert_close(found, expected, **EXACT)
    exact = torch.autograd.grad(layer(x).square().sum(), layer.weight)[0]
    assert not torch.allclose(found, exact)


def test_backwards_layers_take_the_last_chunk_first():
    layer = LS2T(3, 4, 3, reverse=True).double()
    x = draw(20)
    outputs, _ = checkpoint_chunks(layer, x.split(6, dim=1)[::-1])
    assert_close(torch.cat(outputs[::-1], dim=1), layer(x), **EXACT)


def test_running_statistics():
    network = DeepLS2T(3, 4, depth=2).double()
    x = draw(30)
    buffers = {name: tensor.clone() for name, tensor in network.named_buffers()}
    outputs, _ = checkpoint_chunks(chunkwise(network, norm="running"), time_chunks(x, 10))
    assert network.blocks[0].norm.training
    outputs[-1].sum().backward()
    for name, tensor in network.named_buffers():
        assert torch.equal(tensor, buffers[name])
    assert_close(outputs[-1], network.eval()(x), **EXACT)


def test_statistics_of_chunks_are_followed_once():
    network, twin = (DeepLS2T(3, 4, depth=2).double() for _ in range(2))
    twin.load_state_dict(network.state_dict())
    x = draw(30)
    step = chunkwise(network, norm="chunk")
    outputs, _ = checkpoint_chunks(step, time_chunks(x, 10))
    outputs[-1].sum().backward()
    state = None
    for chunk in x.split(10, dim=1):
        y, state = chunkwise(twin, norm="chunk")(chunk, state)
    assert_close(outputs[-1], y, **EXACT)
    y.sum().backward()
    first, second = (gradients_of(net, (p.grad for p in net.parameters())) for net in (network, twin))
    assert_close(first, second, **EXACT)
    assert_close(dict(network.named_buffers()), dict(twin.named_buffers()), **EXACT)
    assert all(block.norm.momentum == 0.01 for block in network.blocks)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (DeepLS2T(3, 4), "`module` must be in evaluation mode, because statistics of a batch"),
        (LS2TBlock(3, 4, 2, time="index"), "must not embed time, .*, got time='index'"),
        (LS2TBlock(3, 4, 2, reverse=True, norm=False), "must only look back"),
        (LS2TBlock(3, 4, 2, spatial_dropout=0.2, norm=False), "without dropout, .*, got a rate of 0.2"),
        (
            FCN(3, 4, return_sequences=True).eval(),
            "must only look back if it returns sequences, .* looks 7 st",
        ),
        (lambda x, state: x, "`module` must return an output and a state, got Tensor"),
    ],
)
def test_modules_that_need_the_whole_sequence(module, message):
    with pytest.raises(ValueError, match=message):
        checkpoint_chunks(module, [torch.zeros(1, 5, 3)])


def test_modules_of_ones_own():
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = LS2T(3, 4, 2, return_sequences=False), torch.nn.Linear(8, 1)

        def forward(self, x, state):
            y, state = self.layer(x, state=state, return_state=True)
            return self.head(y.flatten(1)), state

    model, x = Head().double(), draw(20)
    outputs, _ = checkpoint_chunks(model, x.split(6, dim=1))
    found = torch.autograd.grad(outputs[-1].sum(), list(model.parameters()))
    expected = torch.autograd.grad(model(x, None)[0].sum(), list(model.parameters()))
    assert_close(gradients_of(model, found), gradients_of(model, expected), **EXACT)


def test_wrong_arguments():
    layer = LS2T(3, 4, 2)
    with pytest.raises(ValueError, match=r"`module` must be a layer or network of .*, or have .*, got ReLU"):
        chunkwise(torch.nn.ReLU())
    with pytest.raises(ValueError, match="`chunks` must hold at least one chunk, got none"):
        checkpoint_chunks(layer, [])
    with pytest.raises(ValueError, match="`chunks` must be a sequence, got one tensor or array"):
        checkpoint_chunks(layer, torch.zeros(1, 5, 3))
    with pytest.raises(ValueError, match="`truncate` must be at least 1, got 0"):
        checkpoint_chunks(layer, [torch.zeros(1, 5, 3)], truncate=0)
    with pytest.raises(ValueError, match=r"`x` must have 3 axes \(batch, time, channels\), got 2"):
        time_chunks(torch.zeros(5, 3), 2)
    with pytest.raises(ValueError, match="`norm` must be one of"):
        chunkwise(DeepLS2T(3, 4), norm="batch")


PEAK = """
import torch
from seq2tens.experiments.core.provenance import peak_bytes
from seq2tens.nn import {name} as Network, checkpoint_chunks

network = Network(4, 16, {sizes}, return_sequences=False).eval()

class Walk:
    def __len__(self):
        return {steps} // 100_000

    def __getitem__(self, index):
        noise = torch.randn(1, 100_000, 4, generator=torch.Generator().manual_seed(index))
        return noise / {steps} ** 0.5

outputs, _ = checkpoint_chunks(network, Walk())
outputs[-1].square().mean().backward()
assert all(p.grad.isfinite().all() for p in network.parameters())
print(peak_bytes())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "steps"), [("LS2T", "order=3", 10_000_000), ("DeepLS2T", "depth=3, order=3", 3_000_000)]
)
def test_memory_does_not_grow_with_the_sequence(name, sizes, steps):
    code = PEAK.format(name=name, sizes=sizes, steps=steps)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2 * 2**30


@pytest.mark.parametrize("cls", [LS2TBlock, DeepLS2T])
def test_a_forward_of_its_own_is_not_passed_over(cls):
    class Own(cls):
        def forward(self, *args, **options):
            return -super().forward(*args, **options)

    module = (Own(3, 4, 2, 2) if cls is DeepLS2T else Own(3, 4, 2)).double().eval()
    x = draw(20)
    outputs, _ = checkpoint_chunks(module, x.split(6, dim=1))
    assert_close(result(module, outputs), module(x), **EXACT)
