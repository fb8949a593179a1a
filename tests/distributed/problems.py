"""What the ranks of a group compute, beside what one process does; all in double precision."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from seq2tens import distributed
from seq2tens.algebra.lifts import exponential
from seq2tens.functional import ls2t
from seq2tens.nn import FCN, FCNLS2T, LS2T, BiLS2T, DeepLS2T, LS2TBlock, NeuralLS2T, ResNet

LENGTH, BATCH, CHANNELS = 23, 3, 2
# Steps on each rank: uneven, fewer than a convolution looks ahead, none.
SPLITS = {1: [[23]], 2: [[1, 22], [23, 0]], 3: [[20, 1, 2], [0, 12, 11]], 4: [[10, 1, 1, 11], [0, 12, 0, 11]]}
NETWORKS = {
    "layer": lambda: LS2T(CHANNELS, 4, 3),
    "layer's end": lambda: LS2T(CHANNELS, 4, 3, return_sequences=False, normalize=True),
    "independent": lambda: LS2T(CHANNELS, 4, 3, weights="independent", normalize=True),
    "reverse": lambda: LS2T(CHANNELS, 4, 3, reverse=True, normalize=True),
    "fading lift": lambda: LS2T(CHANNELS, 4, 3, lift_order=2, learn_lift=True, decay="learn"),
    "symmetric": lambda: LS2T(CHANNELS, 4, 3, weights="symmetric", sum_levels=True),
    "neural": lambda: NeuralLS2T(CHANNELS, 4, 2, phi=nn.Sequential(nn.Linear(CHANNELS, 3), nn.Tanh())),
    "neural lift": lambda: NeuralLS2T(CHANNELS, 4, 3, phi=exponential(2), return_sequences=False),
    "both ways": lambda: BiLS2T(CHANNELS, 4, 2, decay=0.9),
    "block": lambda: LS2TBlock(CHANNELS, 4, 2, time="index"),
    "block's end": lambda: LS2TBlock(CHANNELS, 4, 2, time="centred", return_sequences=False),
    "deep": lambda: DeepLS2T(CHANNELS, 4, 3, 3),
    "deep sequences": lambda: DeepLS2T(CHANNELS, 4, 2, return_sequences=True),
    "fcn": lambda: FCN(CHANNELS, 3, time_embedding=True),
    "fcn sequences": lambda: FCN(CHANNELS, 3, return_sequences=True),
    "resnet": lambda: ResNet(CHANNELS, (3, 4)),
    "fcn-ls2t": lambda: FCNLS2T(CHANNELS, 3, 4, 2, 2),
    "fcn-ls2t independent": lambda: FCNLS2T(CHANNELS, 3, 4, 2, 3, weights="independent"),
    "fcn-ls2t normalised": lambda: FCNLS2T(CHANNELS, 3, 4, 2, 3, normalize=0.659),
}


def build(name):
    """The network, the same in every process, with weights that are not zero anywhere."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = NETWORKS[name]().double()
        for parameter in network.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return network


def sequences(masked):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, LENGTH, CHANNELS, dtype=torch.float64, generator=generator)
    mask = torch.rand(BATCH, LENGTH, generator=generator) < 0.7 if masked else None
    return x, mask


def loss_of(y, start=0):
    """Every entry counts differently, and which one it is depends on its place in the whole sequence."""
    place = torch.arange(y[0].numel(), dtype=y.dtype).reshape(y.shape[1:]) + start * y[0, :1].numel()
    rows = torch.arange(1.0, len(y) + 1, dtype=y.dtype).reshape(-1, *[1] * (y.dim() - 1))
    return (y * torch.cos(0.7 * place + rows)).sum() + (y.square() * torch.sin(0.3 * place + rows)).sum()


def one_process(network, x, mask):
    """Output, gradients of input and parameters, and buffers afterwards."""
    x = x.clone().requires_grad_()
    y = network(x, mask)
    y = y if mask is None or y.shape[:2] != mask.shape else torch.where(_like(mask, y), y, 0.0)
    loss_of(y).backward()
    return {"output": y.detach(), "input": x.grad, **_learned(network)}


def split(network, rank, ranks, sizes, x, mask):
    """The same for this rank's chunk; parameters' gradients summed."""
    with torch.no_grad():
        whole = copy.deepcopy(network)(x).shape[1] != LENGTH
    start = sum(sizes[:rank])
    inside = slice(start, start + sizes[rank])
    x = x[:, inside].clone().requires_grad_()
    mask = None if mask is None else mask[:, inside]
    y = distributed.sequence_parallel(network)(x, mask)
    if whole:
        (loss_of(y) / ranks).backward()
    else:
        y = y if mask is None else torch.where(_like(mask, y), y, 0.0)
        loss_of(y, start).backward()
    distributed.sum_gradients(network)
    return {"output": y.detach(), "input": x.grad, **_learned(network)}, inside, whole


def _like(mask, y):
    return mask.reshape(*mask.shape, *[1] * (y.dim() - 2))


def _learned(network):
    gradients = {f"gradient {name}": p.grad for name, p in network.named_parameters()}
    return gradients | {f"buffer {name}": b.clone() for name, b in network.named_buffers()}


def network_errors(rank, ranks):
    """The largest difference from one process, for every network, split, mode and kind of mask."""
    errors = {}
    for name in NETWORKS:
        for training in (True, False):
            for masked in (False, True):
                x, mask = sequences(masked)
                expected = one_process(build(name).train(training), x, mask)
                for sizes in SPLITS[ranks]:
                    found, inside, whole = split(build(name).train(training), rank, ranks, sizes, x, mask)
                    key = f"{name}, training {training}, masked {masked}, {sizes}"
                    errors[key] = _difference(found, expected, inside, whole)
    return errors


def _difference(found, expected, inside, whole):
    """Relative to the size of each tensor, but of at least 1."""
    parts = {"input"} if whole else {"input", "output"}
    assert found.keys() == expected.keys()
    worst = 0.0
    for key, tensor in expected.items():
        tensor = tensor[:, inside] if key in parts else tensor
        assert tensor.shape == found[key].shape, key
        if tensor.numel():
            scale = max(1.0, float(tensor.abs().max()))
            worst = max(worst, float((tensor - found[key]).abs().max()) / scale)
    return worst


def averaged_errors(rank, ranks):
    """Under DistributedDataParallel, which takes the mean of the gradients, the loss is not divided."""
    x, _ = sequences(masked=False)
    expected = one_process(build("fcn-ls2t"), x, None)
    network = build("fcn-ls2t")
    averaging = DistributedDataParallel(distributed.sequence_parallel(network))
    loss_of(averaging(x.tensor_split(ranks, dim=1)[rank])).backward()
    return max(
        float((p.grad - expected[f"gradient {name}"]).abs().max()) for name, p in network.named_parameters()
    )


def halves(rank, ranks):
    """Two groups, each with a sequence of its own; the error of each rank."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    x, _ = sequences(masked=False)
    x = x + rank // 2
    network = build("fcn-ls2t").eval()
    with torch.no_grad():
        parallel = distributed.sequence_parallel(network, groups[rank // 2])
        y = parallel(x.tensor_split([9], dim=1)[rank % 2])
        return float((y - network(x)).abs().max())


def dropped(rank, ranks):
    """Features of a network with dropout, and which channels of a sequence are left."""
    torch.manual_seed(rank)
    x, _ = sequences(masked=False)
    stretch = x.float().tensor_split(ranks, dim=1)[rank]
    pooled = distributed.sequence_parallel(FCNLS2T(CHANNELS, 4, 4, 2, dropout=0.5, spatial_dropout=0.3))
    steps = distributed.sequence_parallel(FCN(CHANNELS, 16, return_sequences=True, spatial_dropout=0.5))
    with torch.no_grad():
        for parameter in (*pooled.parameters(), *steps.parameters()):
            dist.broadcast(parameter, 0)
        steps.module.convolutions.blocks[-1].norm.bias.fill_(10)  # so that only dropout gives zeros
        return pooled(stretch).tolist(), (steps(stretch) != 0).any(1).tolist()


def mistakes(rank, ranks):
    """What is said about what cannot be."""
    told = []
    for module, shape in [
        (nn.Linear(2, 2), (1, 4, 2)),
        (FCN(2, 3), (1, 4, 3)),
        (FCN(2, 3), (1 + rank, 4, 2)),
        (FCN(2, 3), (4, 2)),
    ]:
        try:
            distributed.sequence_parallel(module)(torch.zeros(shape))
        except ValueError as error:
            told.append(str(error))
    return told


def function_errors(rank, ranks):
    """`distributed.ls2t` with every option, beside `functional.ls2t`."""
    x, mask = sequences(masked=True)
    generator = torch.Generator().manual_seed(2)
    errors = {}
    for weights, components in (("recursive", 3), ("independent", 6)):
        drawn = torch.randn(components, CHANNELS + 1, 4, dtype=torch.float64, generator=generator)
        for options in (
            {},
            {"reverse": True},
            {"return_sequences": False},
            {"lift_order": 3, "decay": torch.tensor([1.0, 0.9, 0.5, 0.99], dtype=torch.float64)},
        ):
            for sizes in SPLITS[ranks]:
                key = f"{weights} {sorted(options)} {sizes}"
                errors[key] = _function_error(rank, ranks, sizes, x, mask, drawn, weights, options)
    return errors


def _function_error(rank, ranks, sizes, x, mask, drawn, weights, options):
    inside = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    whole = not options.get("return_sequences", True)
    given = {"order": 3, "weights": weights, **options}

    def both(function, x, mask, part, start=0, **more):
        weight, bias = (t.clone().requires_grad_() for t in (drawn[:, :-1], drawn[:, -1]))
        x = x.clone().requires_grad_()
        y = function(x, weight, bias, mask=mask, **given, **more)
        (loss_of(y, start) * part).backward()
        return y.detach(), x.grad, [weight, bias]

    expected, slope, parameters = both(ls2t, x, mask, 1.0)
    part = 1 / ranks if whole else 1.0
    start = 0 if whole else inside.start
    y, x_slope, mine = both(
        distributed.ls2t, x[:, inside], mask[:, inside], part, start, group=torch.distributed.group.WORLD
    )
    distributed.sum_gradients(mine)
    found = {"output": y, "input": x_slope, "weight": mine[0].grad, "bias": mine[1].grad}
    wanted = {
        "output": expected,
        "input": slope,
        "weight": parameters[0].grad,
        "bias": parameters[1].grad,
    }
    return _difference(found, wanted, inside, whole)
