"""Random networks in which nothing is 0 or 1 by accident, and sequences for them."""

import copy

import torch

from seq2tens import nn
from seq2tens.estimators.networks import WithHead


def randomized(features, n_classes=3, seed=0, scale=0.4):
    """A network with a head, with random parameters and running statistics, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    network = WithHead(copy.deepcopy(features), n_classes).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
        for name, buffer in network.named_buffers():
            noise = torch.randn(buffer.shape, generator=generator)
            if "running" in name:
                buffer.copy_(noise.abs() + 0.5 if name.endswith("var") else noise)
    return network


def sequence(steps, channels=3, seed=0):
    return torch.randn(steps, channels, generator=torch.Generator().manual_seed(100 + seed))


def networks(channels=3):
    """Every kind of network, with a name."""
    yield "fcn", nn.FCN(channels, 6)
    yield "fcn with time", nn.FCN(channels, 6, time_embedding=True)
    yield "resnet", nn.ResNet(channels, (4, 6))
    yield "ls2t summed", nn.DeepLS2T(channels, 5, 2, 3, sum_levels=True)
    yield "ls2t symmetric", nn.DeepLS2T(channels, 5, 2, 3, weights="symmetric")
    for weights in ("recursive", "independent"):
        for depth in (1, 2, 3):
            for order in (1, 2, 3, 4):
                name = f"{weights} depth {depth} order {order}"
                yield f"ls2t {name}", nn.DeepLS2T(channels, 5, depth, order, weights=weights)
                yield f"fcn-ls2t {name}", nn.FCNLS2T(channels, 4, 5, depth, order, weights=weights)


class Chain(torch.nn.Module):
    """Features made of parts, one after the other."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = torch.nn.Sequential(*parts)
        self.out_features = next(p.out_features for p in reversed(parts) if hasattr(p, "out_features"))

    def forward(self, x, lengths=None):
        return self.parts(x)


def outputs(network, x, baseline, target):
    """The target's logit against the mean of the others, for both, in float64 by the network itself."""
    with torch.no_grad():
        logits = network.double()(torch.stack([x, baseline]).double())
    others = [k for k in range(logits.shape[1]) if k != target]
    return (logits[:, target] - logits[:, others].mean(1)).tolist()
