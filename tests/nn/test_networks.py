import copy
import math
import pickle

import pytest
import torch
from torch.testing import assert_close

from comparison import gradients_of
from seq2tens.nn import FCN, FCNLS2T, DeepLS2T, LS2TBlock, ResNet, mean_pool

EXACT = {"rtol": 1e-10, "atol": 1e-10}
NETWORKS = {
    "fcn": lambda: FCN(3, 4),
    "fcn-time": lambda: FCN(3, 4, time_embedding=True),
    "resnet": lambda: ResNet(3, (4, 6)),
    "ls2t": lambda: DeepLS2T(3, 4, 2),
    "fcn-ls2t": lambda: FCNLS2T(3, 4, 5, 2),
    "fcn-ls2t-independent": lambda: FCNLS2T(3, 4, 5, 2, 3, weights="independent"),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


def build(name, training=False):
    torch.manual_seed(0)
    network = NETWORKS[name]().double().train(training)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # away from initial values at which parameters or statistics have no effect
        for key, value in network.state_dict().items():
            if key.endswith(("bias", "running_mean")):
                value.uniform_(-0.5, 0.5, generator=generator)
            elif "norm" in key:
                value.uniform_(0.5, 1.5, generator=generator)
    return network


def sequences(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def spread(x, places, total):
    """Put the steps of x at the given places among NaN."""
    padded = x.new_full((x.shape[0], total, x.shape[2]), math.nan)
    padded[:, places] = x
    mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
    mask[:, places] = True
    return padded, mask


def count(network):
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


@pytest.mark.parametrize(
    ("network", "published"),
    [
        (lambda: DeepLS2T(3), 33_536),
        (lambda: FCNLS2T(3), 119_616),
        (lambda: FCN(3), 266_752),
        (lambda: FCNLS2T(3, 128), 336_768),
        (lambda: ResNet(3), 521_664),
    ],
)
def test_parameter_counts_of_the_paper(network, published):
    assert count(network()) == published


def load_fcn(values):
    model = FCN(3, 4, time_embedding=True).double()
    with torch.no_grad():
        for i, block in enumerate(model.convolutions.blocks):
            block.conv.weight.copy_(values[f"w{2 * i}"].permute(2, 1, 0))
            block.conv.bias.copy_(values[f"w{2 * i + 1}"])
            block.norm.weight.copy_(values[f"w{6 + 2 * i}"])
            block.norm.bias.copy_(values[f"w{7 + 2 * i}"])
    return model, [block.norm for block in model.convolutions.blocks], 12


def load_deep(values):
    model = DeepLS2T(3, 5, 2).double()
    with torch.no_grad():
        for i, block in enumerate(model.blocks):
            kernel = values[f"w{2 * i}"]
            if i:  # they flatten (functional, level), we flatten (level, functional)
                kernel = kernel.reshape(2, 5, 2, 5).transpose(1, 2).reshape(2, 10, 5)
            block.ls2t.weight.copy_(kernel)
            block.ls2t.bias.copy_(values[f"w{2 * i + 1}"])
    return model, [block.norm for block in model.blocks], 4


@pytest.mark.data("../reference")
@pytest.mark.parametrize(("file", "load"), [("net_FCN.npz", load_fcn), ("net_DeepLS2TNet.npz", load_deep)])
def test_the_authors_networks(reference, file, load):
    values = {k: torch.from_numpy(v) for k, v in reference(file).items() if k != "names"}
    model, norms, first = load(values)
    near = {"rtol": 1e-7, "atol": 1e-7}  # their statistics are kept in float32

    def theirs(name):
        out = values[name]
        return out if load is load_fcn else out.reshape(4, 5, 2).transpose(1, 2).flatten(1)

    def statistics(suffix=""):
        for i, norm in enumerate(norms):
            yield norm.running_mean, values[f"w{first + 2 * i}{suffix}"]
            yield norm.running_var, values[f"w{first + 1 + 2 * i}{suffix}"]

    for own, published in statistics():
        own.copy_(published)
    assert_close(model.eval()(values["x"]), theirs("out_eval"), **near)
    assert_close(model.train()(values["x"]), theirs("out_train"), **near)
    for own, published in statistics("_after_train_step_forward"):
        assert_close(own, published, **near)


@every_network
@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_neither_output_nor_statistics(name, training):
    x = sequences(4, 6, 3)
    results = []
    for places, total in [
        (range(6), 6),
        (range(3, 9), 9),
        (range(6), 8),
        (range(1, 7), 8),
        ([0, 2, 3, 4, 7, 9], 11),
    ]:
        network = build(name, training)
        padded, mask = spread(x, list(places), total)
        y = network(padded, mask)
        y.sum().backward()
        gradients = gradients_of(network, (p.grad for p in network.parameters()))
        results.append({"y": y, **dict(network.named_buffers()), **gradients})
    network = build(name, training)
    y = network(torch.nn.functional.pad(x, (0, 0, 0, 3), value=math.nan), lengths=torch.full((4,), 6))
    results.append({"y": y, **dict(network.named_buffers())})
    network = build(name, training)
    results.append({"y": network(x), **dict(network.named_buffers())})
    for other in results[1:]:
        assert_close({part: results[0][part] for part in other}, other, **EXACT)


@every_network
def test_batch_composition_in_eval_mode(name):
    network, x, lengths = build(name), sequences(4, 9, 3), torch.tensor([9, 4, 1, 0])
    whole = network(x, lengths=lengths)
    assert whole.shape == (4, network.out_features)
    for i, length in enumerate(lengths[:3]):
        assert_close(whole[i : i + 1], network(x[i : i + 1, :length]), **EXACT)


@every_network
@pytest.mark.parametrize("training", [True, False])
def test_short_and_empty_sequences(name, training):
    network = build(name, training)
    assert network(sequences(2, 1, 3)).isfinite().all()
    assert network(sequences(1, 1, 3)).isfinite().all()
    y = network(sequences(3, 5, 3), lengths=torch.tensor([5, 0, 1]))
    assert y.isfinite().all()
    if name in ("fcn", "fcn-time", "resnet"):
        assert (y[1] == 0).all()
    y = network(sequences(3, 5, 3), mask=torch.zeros(3, 5, dtype=torch.bool))
    y.sum().backward()
    assert all(t.isfinite().all() for t in [y, *network.buffers(), *(p.grad for p in network.parameters())])


@every_network
@pytest.mark.parametrize("training", [True, False])
def test_gradients_reach_every_parameter(name, training):
    network, x = build(name, training), sequences(5, 12, 3).requires_grad_()
    network(x, lengths=torch.tensor([12, 7, 9, 12, 1])).square().sum().backward()
    assert x.grad.isfinite().all()
    for key, parameter in network.named_parameters():
        assert parameter.grad.isfinite().all(), key
        # in training, a normalisation takes out what a bias before it adds
        if not (training and key.endswith("conv.bias")):
            assert parameter.grad.abs().max() > 0, key


@every_network
def test_dtypes_and_autocast(name):
    x, lengths = sequences(4, 20, 3), torch.tensor([20, 12, 1, 0])
    network = build(name)
    target = network(x, lengths=lengths)
    single = build(name).float()
    assert_close(single(x.float(), lengths=lengths).double(), target, rtol=1e-4, atol=1e-4)
    for training in (False, True):
        single.train(training)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = single(x.float(), lengths=lengths)
        y.float().sum().backward()
        assert all(p.grad.isfinite().all() for p in single.parameters())
        if not training:
            assert_close(y.double(), target, rtol=0.1, atol=0.1 * float(target.detach().abs().max()))


@every_network
@pytest.mark.parametrize("training", [True, False])
def test_half_precision_model(name, training):
    network, x = build(name, training).bfloat16(), sequences(4, 20, 3).bfloat16()
    for lengths in (None, torch.tensor([20, 12, 1, 0])):
        assert network(x, lengths=lengths).isfinite().all()


@pytest.mark.slow
@every_network
@pytest.mark.parametrize(("given", "training"), [("nothing", True), ("lengths", False), ("mask", True)])
def test_compile_fullgraph(name, given, training):
    torch._dynamo.reset()
    x, lengths = sequences(3, 7, 3), torch.tensor([7, 3, 0])
    mask = torch.arange(7).flip(0) < lengths[:, None]
    options = {"nothing": {}, "lengths": {"lengths": lengths}, "mask": {"mask": mask}}[given]
    eager, other = build(name, training), build(name, training)
    target, y = eager(x, **options), torch.compile(other, fullgraph=True, backend="aot_eager")(x, **options)
    assert_close(y, target, **EXACT)
    for network, out in [(eager, target), (other, y)]:
        network.zero_grad()
        out.square().sum().backward()
    first, second = (gradients_of(net, (p.grad for p in net.parameters())) for net in (other, eager))
    assert_close(first, second, **EXACT)
    assert_close(dict(other.named_buffers()), dict(eager.named_buffers()), **EXACT)


@every_network
def test_pickle_copy_and_state_dict(name):
    network, x = build(name), sequences(2, 9, 3)
    other = build(name)
    other.load_state_dict(network.state_dict())
    for twin in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network), other):
        assert_close(twin(x), network(x), rtol=0, atol=0)


@every_network
def test_a_nan_stays_in_its_own_sequence(name):
    network, x = build(name), sequences(3, 6, 3)
    clean = network(x)
    x[1, 2, 0] = math.nan
    y = network(x, lengths=torch.tensor([6, 5, 6]))
    assert_close(y[[0, 2]], clean[[0, 2]], **EXACT)
    assert y[1].isnan().any()


def test_fcn_sequences_stand_where_they_stood():
    x, mask = spread(sequences(2, 4, 3), [1, 2, 5, 6], 8)
    network = build("fcn")
    pooled = network(x, mask)
    network.return_sequences = True
    y = network(x, mask)
    assert y.shape == (2, 8, 4)
    assert (y[~mask] == 0).all()
    assert_close(y[mask], network(x[:, [1, 2, 5, 6]]).flatten(0, 1), **EXACT)
    assert_close(mean_pool(y, mask), pooled, **EXACT)


@pytest.mark.parametrize("training", [True, False])
def test_deep_sequences_with_gaps(training):
    places = [1, 2, 5, 6]
    x, mask = spread(sequences(2, 4, 3), places, 8)
    torch.manual_seed(0)
    network = DeepLS2T(3, 4, return_sequences=True).double().train(training)
    assert_close(network(x, mask)[:, places], copy.deepcopy(network)(x[:, places]), **EXACT)


def test_merges_keep_the_scale():
    """In training both branches have mean 0 and variance 1 in every channel before they are summed."""
    network = FCNLS2T(3, 4, 5).double().train()
    seen = {}
    for name in ("fcn_norm", "input_shortcut", "fcn_shortcut"):
        network.get_submodule(name).register_forward_hook(
            lambda m, i, out, name=name: seen.update({name: out})
        )
    network.ls2t.register_forward_hook(lambda m, i, out: seen.update(ls2t=out, start=i[0]))
    y = network(sequences(40, 30, 3))
    assert_close(seen["start"], (seen["fcn_norm"] + seen["input_shortcut"]) / math.sqrt(2), **EXACT)
    assert_close(y, (seen["ls2t"] + seen["fcn_shortcut"][:, 0]) / math.sqrt(2), **EXACT)
    for out in (seen["fcn_norm"], seen["input_shortcut"], seen["fcn_shortcut"]):
        assert_close(out.mean((0, 1)), torch.zeros(out.shape[2]).double(), **EXACT)


@pytest.mark.parametrize(
    "network", [lambda **o: FCN(3, 8, **o), lambda **o: FCNLS2T(3, 8, 6, **o)], ids=["fcn", "fcn-ls2t"]
)
def test_dropout(network):
    x = sequences(5, 9, 3)
    for options in ({"dropout": 0.5}, {"spatial_dropout": 0.5}):
        model = network(**options).double()
        torch.manual_seed(0)
        a = model(x)
        torch.manual_seed(1)
        assert not torch.equal(model(x), a)
        model.eval()
        assert torch.equal(model(x), model(x))
    dropped = network(dropout=0.5).double()(x) == 0
    assert dropped.any()
    assert not dropped.all()


def test_spatial_dropout_takes_whole_channels():
    torch.manual_seed(0)
    y = FCN(3, 8, spatial_dropout=0.5, return_sequences=True).double()(sequences(5, 60, 3))
    silent = (y == 0).all(1)
    assert 5 < silent.sum() < 35
    block = LS2TBlock(3, 8, 2, spatial_dropout=0.5).double()
    y = block(sequences(5, 9, 3))
    zero = y == 0
    assert (zero.all(1) == zero.any(1)).all()
    assert 20 < zero.all(1).sum() < 60


def test_errors_name_argument_rule_and_value():
    with pytest.raises(ValueError, match=r"`x` must have 3 channels \(in_features\), got 2"):
        FCN(3)(torch.randn(2, 5, 2))
    with pytest.raises(ValueError, match="`x` must have 3 axes"):
        ResNet(3)(torch.randn(5, 3))
    with pytest.raises(ValueError, match="at least one time step"):
        FCNLS2T(3)(torch.randn(2, 0, 3))
    with pytest.raises(ValueError, match=r"`lengths` must lie in 0..5 .* got 6 at index 1"):
        FCNLS2T(3)(torch.randn(2, 5, 3), lengths=torch.tensor([5, 6]))
    with pytest.raises(TypeError, match="`mask` must be boolean"):
        FCN(3)(torch.randn(2, 5, 3), mask=torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"`dropout` must lie in \[0, 1\), got 1.5"):
        FCN(3, dropout=1.5)
    with pytest.raises(ValueError, match=r"`spatial_dropout` must lie in \[0, 1\), got -1"):
        FCNLS2T(3, spatial_dropout=-1)
    with pytest.raises(ValueError, match="`fcn_width` must be at least 1, got 0"):
        FCNLS2T(3, 0)
    with pytest.raises(ValueError, match="`widths` must have at least one block"):
        ResNet(3, ())
    with pytest.raises(ValueError, match=r"`normalize` must be True, False or in \(0, 1\], got 'binomial'"):
        FCNLS2T(3, normalize="binomial")
    with pytest.raises(ValueError, match=r"`normalize` must be True, False or in \(0, 1\], got 1.5"):
        FCNLS2T(3, normalize=1.5)
    with pytest.raises(ValueError, match="`weights` must be one of"):
        FCNLS2T(3, weights="shared")
    with pytest.raises(TypeError, match="`width` must be an integer, got float"):
        FCN(3, 4.0)
