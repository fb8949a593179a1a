"""In training a network does what its modules say now, also where one operation stands for several of them.

The definition is the network with the modules called one by one. Each change is made to one module after the
other, and output, gradients and running statistics are compared.
"""

import warnings
from collections import Counter
from contextlib import contextmanager
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from torch.nn.utils import parametrizations, parametrize, prune
from torch.testing import assert_close

from seq2tens.nn import (
    FCN,
    FCNLS2T,
    LS2T,
    DeepLS2T,
    LevelNorm,
    LS2TBlock,
    MaskedBatchNorm,
    MaskedConv,
    ResNet,
)
from seq2tens.nn.masked import mean_pool, spatial_dropout
from seq2tens.nn.networks import ConvBlock

EXACT = {"rtol": 1e-9, "atol": 1e-9}
NETWORKS = {
    "deep": lambda: DeepLS2T(3, 16, 2),
    "deep-sequences": lambda: DeepLS2T(3, 16, 2, return_sequences=True),
    "fcn": lambda: FCN(3, 4),
    "resnet": lambda: ResNet(3, (4,)),
    "fcn-ls2t": lambda: FCNLS2T(3, 4, 16, 2),
}
FUSED = {
    "deep": {"_StackBackward": 1},
    "deep-sequences": {"_StackBackward": 1},
    "fcn": {"_NormalizeProductBackward": 3},
    "resnet": {"_NormalizeProductBackward": 4},
    "fcn-ls2t": {"_NormalizeProductBackward": 3, "_StackBackward": 1},
}
LENGTHS = torch.tensor([6, 4, 6, 1, 0])
every_network = pytest.mark.parametrize("name", NETWORKS)


def build(name):
    torch.manual_seed(0)
    network = NETWORKS[name]().double()
    with torch.no_grad():  # away from initial values that have no effect
        for key, value in network.state_dict().items():
            if key.endswith(("bias", "running_mean")):
                value.uniform_(-0.5, 0.5)
            elif "norm" in key:
                value.uniform_(0.5, 1.5)
    return network


def conv_block(self, x, mask=None, clock=None):
    y = self.norm(self.conv(x, clock=clock), mask)
    return spatial_dropout(y.relu() if self.activation else y, self.spatial_dropout, self.training)


def deep(self, x, mask=None, lengths=None, *, aligned=False):
    mask = mask_of(x, lengths) if mask is None else mask
    for block in self.blocks:
        x = block(x, mask, aligned=True)
    return x


def fcn_ls2t(self, x, mask=None, lengths=None):
    mask = mask_of(x, lengths)
    x = torch.where(mask[..., None], x, 0.0)
    near = self.fcn(x, mask)
    start = (self.fcn_norm(near, mask) + self.input_shortcut(x, mask)) * 0.5**0.5
    far = self.ls2t(start, mask, aligned=True)
    y = (far + self.fcn_shortcut(mean_pool(near, mask)[:, None])[:, 0]) * 0.5**0.5
    return nn.functional.dropout(y, self.dropout, self.training)


def mask_of(x, lengths):
    return torch.arange(x.shape[1]) < lengths[:, None]


@contextmanager
def one_by_one():
    """Inside, whatever calls several modules at once calls them one by one; the others are as they are."""
    with pytest.MonkeyPatch.context() as patch:
        for cls, forward in ((ConvBlock, conv_block), (DeepLS2T, deep), (FCNLS2T, fcn_ls2t)):
            patch.setattr(cls, "forward", forward)
        yield


def run(network):
    """Everything that a step of training computes."""
    x = torch.randn(5, 6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.where(mask_of(x, LENGTHS)[..., None], x, 0.0).requires_grad_()
    torch.manual_seed(1)
    y = network(x, lengths=LENGTHS)
    y.sin().sum().backward()
    gradients = {f"d{key}": value.grad for key, value in network.named_parameters()}
    return {"y": y.detach(), "dx": x.grad, **gradients, **dict(network.named_buffers())}


def assert_same(found, expected, changed):
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert_close(found[key], value, **EXACT, msg=lambda text, key=key: f"{changed}: {key}: {text}")


def is_same(found, expected):
    try:
        assert_same(found, expected, "")
    except AssertionError:
        return False
    return True


def paths(network, cls=nn.Module):
    """Names of the modules of a class that are called."""
    return [
        path
        for path, part in network.named_modules()
        if isinstance(part, cls) and not isinstance(part, nn.ModuleList)
    ]


def set_to(**values):
    def change(module):
        for name, value in values.items():
            setattr(module, name, value)

    return change


def parameter(*shape, value=0.7):
    return nn.Parameter(torch.full(shape, value, dtype=torch.float64))


def waves(y, gate=1.0):
    """Something that no normalisation takes out again, and that leaves 0 where it is."""
    return (3 * gate * y).sin()


def subclass(module):
    class Gated(type(module)):
        def forward(self, *args, **options):
            return waves(super().forward(*args, **options), self.gate)

    module.__class__, module.gate = Gated, parameter()


def own_forward(module):
    forward = module.forward
    module.forward = lambda *args, **options: waves(forward(*args, **options))


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **options):
        return waves(self.inner(*args, **options))


def wrap(module):
    """Put a module of another class in the place of those that the module holds."""
    for name, part in list(module.named_children()):
        if not isinstance(part, LS2T | nn.ModuleList):  # a block asks its LS2T for options
            module.set_submodule(name, Wrapper(part))
    for part in module.children():
        if isinstance(part, nn.ModuleList):
            part[0] = Wrapper(part[0])


def forward_hook(module):
    module.register_forward_hook(lambda module, inputs, y: waves(y))


def forward_pre_hook(module):
    module.register_forward_pre_hook(lambda module, inputs: (waves(inputs[0]), *inputs[1:]))


def backward_hook(module):
    module.register_full_backward_hook(lambda module, dx, dy: (2 * dx[0], *dx[1:]))


def backward_pre_hook(module):
    module.register_full_backward_pre_hook(lambda module, dy: (3 * dy[0],))


class Cube(nn.Module):
    def forward(self, weight):
        return 9 * weight**3


def parametrization(module):
    parametrize.register_parametrization(module, "weight", Cube())


def weight_norm(module):
    parametrizations.weight_norm(module)
    with torch.no_grad():
        module.parametrizations.weight.original0.mul_(torch.linspace(0.5, 2, 3).mean())


def weight_norm_by_hook(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's older one, which is still used
        nn.utils.weight_norm(module)
    with torch.no_grad():
        module.weight_g.mul_(1.5)


def pruned(module):
    prune.l1_unstructured(module, "weight", amount=0.5)


def independent(layer):
    layer.weights, layer.weight = "independent", parameter(3, layer.in_features, layer.width, value=0.1)
    layer.bias = parameter(3, layer.width)


def embed_time(block):
    old = block.ls2t
    block.time, block.ls2t = "index", LS2T(old.in_features + 1, 16, 2, dtype=torch.float64)
    block.ls2t.return_sequences = old.return_sequences


CHANGES = {
    "a subclass": (nn.Module, subclass),
    "a forward of its own": (nn.Module, own_forward),
    "another module": (nn.Module, wrap),
    "forward hook": (nn.Module, forward_hook),
    "forward pre-hook": (nn.Module, forward_pre_hook),
    "backward hook": (nn.Module, backward_hook),
    "backward pre-hook": (nn.Module, backward_pre_hook),
    "eval": (nn.Module, nn.Module.eval),
    "norm.eval": (MaskedBatchNorm, nn.Module.eval),
    "norm.eps": (MaskedBatchNorm, set_to(eps=0.3)),
    "norm.momentum": (MaskedBatchNorm, set_to(momentum=0.4)),
    "norm.weight": (LevelNorm, lambda norm: set_to(weight=parameter(2))(norm)),
    "norm.bias": (LevelNorm, lambda norm: set_to(bias=parameter(2))(norm)),
    "norm without weight": (MaskedBatchNorm, set_to(weight=None)),
    "norm without bias": (MaskedBatchNorm, set_to(bias=None)),
    "norm in single precision": (MaskedBatchNorm, nn.Module.float),
    "block.difference": (LS2TBlock, set_to(difference=False)),
    "block.spatial_dropout": (LS2TBlock, set_to(spatial_dropout=0.5)),
    "block.time": (LS2TBlock, embed_time),
    "block.norm": (LS2TBlock, set_to(norm=None)),
    "ls2t.reverse": (LS2T, set_to(reverse=True)),
    "ls2t.lift_order": (LS2T, set_to(lift_order=2)),
    "ls2t.lift": (LS2T, lambda layer: set_to(lift_order=2, lift=parameter(1))(layer)),
    "ls2t.decay": (LS2T, set_to(decay=torch.full((16,), 0.6, dtype=torch.float64))),
    "ls2t.decay_logit": (LS2T, lambda layer: set_to(decay_logit=parameter(16))(layer)),
    "ls2t.exponent_logit": (LS2T, lambda layer: set_to(exponent_logit=parameter(2))(layer)),
    "ls2t.weights": (LS2T, independent),
    "ls2t.bias": (LS2T, set_to(bias=None)),
    "conv.bias": (MaskedConv, set_to(bias=None)),
    "conv.activation": (ConvBlock, lambda block: set_to(activation=not block.activation)(block)),
    "conv.spatial_dropout": (ConvBlock, set_to(spatial_dropout=0.5)),
    "dropout": ((FCN, FCNLS2T), set_to(dropout=0.5)),
    "parametrization": ((LS2T, MaskedConv), parametrization),
    "weight_norm": ((LS2T, MaskedConv), weight_norm),
    "weight_norm by hook": ((LS2T, MaskedConv), weight_norm_by_hook),
    "prune": ((LS2T, MaskedConv), pruned),
}
# modules for which a change is none
WITHOUT_EFFECT = {
    "another module": lambda part: isinstance(part, LS2T | MaskedConv | MaskedBatchNorm),  # hold none
    "eval": lambda part: isinstance(part, LS2T | MaskedConv),  # do the same in both modes
    "norm without weight": lambda part: isinstance(part, LevelNorm),
    "norm without bias": lambda part: isinstance(part, LevelNorm),
    "ls2t.reverse": lambda part: not part.return_sequences,  # the whole sequence's value is the same
}
CASES = [
    (name, change) for name in NETWORKS for change, (cls, _) in CHANGES.items() if paths(build(name), cls)
]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_every_change_is_honoured(name, change):
    cls, make = CHANGES[change]
    plain = run(build(name))
    for path in paths(build(name), cls):
        found, expected = build(name), build(name)
        for network in (found, expected):
            torch.manual_seed(2)
            make(network.get_submodule(path))
        with one_by_one():
            target = run(expected)
        assert_same(run(found), target, path)
        effective = not WITHOUT_EFFECT.get(change, lambda part: False)(expected.get_submodule(path))
        assert effective != is_same(target, plain), path


def operations(y):
    """How often each operation stands in the graph of a result."""
    nodes, found = [y.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in found:
            found.add(node)
            nodes += [before for before, _ in node.next_functions]
    return Counter(node.name() for node in found)


@every_network
def test_plain_networks_are_fused_and_agree(name):
    x, network = torch.randn(4, 6, 3, dtype=torch.float64), build(name)

    def fused():
        counts = operations(network(x))
        return {operation: counts[operation] for operation in FUSED[name]}

    assert fused() == FUSED[name]
    hooks = [network.get_submodule(path).register_forward_hook(lambda *_: None) for path in paths(network)]
    assert fused() == dict.fromkeys(FUSED[name], 0)
    for hook in hooks:
        hook.remove()
    assert fused() == FUSED[name]
    with one_by_one():
        target = run(build(name))
    assert_same(run(build(name)), target, "plain")


@every_network
@pytest.mark.parametrize(
    "register",
    [
        nn.Module.register_forward_hook,
        nn.Module.register_forward_pre_hook,
        nn.Module.register_full_backward_hook,
        nn.Module.register_full_backward_pre_hook,
        lambda _, hook: register_module_forward_hook(hook),
        lambda _, hook: register_module_forward_pre_hook(hook),
        lambda _, hook: register_module_full_backward_hook(hook),
        lambda _, hook: register_module_full_backward_pre_hook(hook),
    ],
    ids=lambda register: getattr(register, "__name__", "global"),
)
def test_hooks_see_every_module(name, register):
    def seen(network):
        calls, names = [], {part: path for path, part in network.named_modules()}
        hook = lambda part, *_: calls.append(names[part])  # noqa: E731
        parts = [network.get_submodule(path) for path in paths(network)]
        handles = {register(part, hook) for part in parts[: 1 if register.__name__ == "<lambda>" else None]}
        run(network)
        for handle in handles:
            handle.remove()
        return calls

    with one_by_one():
        expected = seen(build(name))
    assert seen(build(name)) == expected
    assert set(expected) == set(paths(build(name)))


@every_network
def test_frozen_statistics_do_not_move(name):
    network = build(name)
    norms = [part for part in network.modules() if isinstance(part, MaskedBatchNorm)]
    for norm in norms:
        norm.eval()
    before = {key: value.clone() for key, value in network.named_buffers()}
    after = run(network)
    assert len(before) == 2 * len(norms) > 0
    assert all(torch.equal(after[key], value) for key, value in before.items())
    network.eval()  # nothing but the statistics depends on the mode
    assert_same({"y": run(network)["y"]}, {"y": after["y"]}, "eval")


@every_network
def test_a_parameter_of_a_subclass_gets_its_gradient(name):
    for path in paths(build(name)):
        network = build(name)
        subclass(network.get_submodule(path))
        run(network)
        assert network.get_submodule(path).gate.grad.abs() > 0, path


@pytest.mark.parametrize("name", ["deep", "deep-sequences", "fcn-ls2t"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("attribute", "value", "rule"),
    [
        ("backend", "nonsense", "`backend` must be one of"),
        ("weights", "nonsense", "`weights` must be one of"),
        ("order", 5, "`weight` must have 5 components"),
        ("lift_order", 0, "`lift_order` must be at least 1"),
        ("weight", nn.Parameter(torch.zeros(2, 7, 16).double()), "`x` must have 7 channels"),
        ("bias", nn.Parameter(torch.zeros(2, 3).double()), "`bias` must have shape"),
    ],
)
def test_attributes_that_make_no_sense_raise(name, training, attribute, value, rule):
    for path in paths(build(name), LS2T):
        network = build(name).train(training)
        setattr(network.get_submodule(path), attribute, value)
        with pytest.raises(ValueError, match=rule):
            run(network)


@pytest.mark.parametrize("name", ["deep", "fcn-ls2t"])
@pytest.mark.parametrize("training", [True, False])
def test_a_layer_that_ends_too_early_raises(name, training):
    network = build(name).train(training)
    next(part for part in network.modules() if isinstance(part, LS2T)).return_sequences = False
    with pytest.raises(ValueError, match="`x` must have 3 axes"):
        run(network)


@pytest.mark.parametrize("name", ["fcn", "resnet", "fcn-ls2t"])
@pytest.mark.parametrize("wrong", [partial(MaskedConv, 7, 4), partial(MaskedConv, 3, 7)])
def test_convolutions_of_other_sizes_raise(name, wrong):
    for path in paths(build(name), MaskedConv):
        network = build(name)
        kernel = network.get_submodule(path).weight.shape[2]
        network.set_submodule(path, wrong(kernel).double())
        with pytest.raises((RuntimeError, ValueError)):
            run(network)


def test_wrong_channels_are_told_in_training():
    with pytest.raises(ValueError, match="`x` must have 3 channels"):
        build("deep")(torch.zeros(2, 5, 4, dtype=torch.float64))
