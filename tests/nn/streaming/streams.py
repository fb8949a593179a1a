"""Modules that can be streamed, for tests, and what their streams must give."""

from itertools import pairwise

import torch
from torch import nn

from seq2tens.nn import FCN, FCNLS2T, LS2T, DeepLS2T, Difference, Lags, LS2TBlock, NeuralLS2T, ResNet


class TwoLevels(nn.Module):
    """A lift whose second level is no power of the first."""

    def __init__(self, in_features, features):
        super().__init__()
        self.first = nn.Linear(in_features, features)
        self.second = nn.Linear(in_features, features * features)

    def forward(self, x):
        vectors = self.first(x).tanh()
        return [vectors, self.second(x).tanh().unflatten(-1, (vectors.shape[-1], -1))]


EXACT = {"rtol": 1e-10, "atol": 1e-10}
STEPS = 30
# Whether the module gives sequences, and how to build it; none of them looks at a clock.
MODULES = {
    "ls2t": (True, lambda: LS2T(3, 4, 3)),
    "ls2t-independent": (True, lambda: LS2T(3, 4, 3, weights="independent", bias=False)),
    "ls2t-symmetric": (True, lambda: LS2T(3, 4, 3, weights="symmetric")),
    "ls2t-summed": (True, lambda: LS2T(3, 4, 3, sum_levels=True, normalize=True)),
    "ls2t-lifted": (True, lambda: LS2T(3, 4, 3, lift_order=2, normalize=True)),
    "ls2t-learned-lift": (
        False,
        lambda: LS2T(3, 16, 2, lift_order=2, learn_lift=True, return_sequences=False),
    ),
    "ls2t-fading": (False, lambda: LS2T(3, 4, 3, decay="learn", normalize=True, return_sequences=False)),
    "ls2t-decay": (True, lambda: LS2T(3, 4, 2, decay=0.9, weights="independent")),
    "neural": (True, lambda: NeuralLS2T(3, 4, 2, phi=nn.Sequential(nn.Linear(3, 5), nn.Tanh()))),
    "neural-lift": (False, lambda: NeuralLS2T(3, 4, 3, phi=TwoLevels(3, 2), return_sequences=False)),
    "block": (True, lambda: LS2TBlock(3, 4, 2, difference=False)),
    "block-bare": (False, lambda: LS2TBlock(3, 4, 2, time=None, norm=False, return_sequences=False)),
    "deep": (False, lambda: DeepLS2T(3, 4, 2)),
    "deep-summed": (False, lambda: DeepLS2T(3, 4, 2, sum_levels=True)),
    "deep-independent": (True, lambda: DeepLS2T(3, 4, 2, weights="independent", return_sequences=True)),
    "fcn": (False, lambda: FCN(3, 4, dropout=0.5, spatial_dropout=0.5)),
    "resnet": (False, lambda: ResNet(3, (4, 6))),
    "fcn-ls2t": (False, lambda: FCNLS2T(3, 4, 5, 3, time_embedding=False)),
    "fcn-ls2t-independent": (
        False,
        lambda: FCNLS2T(3, 4, 5, 1, 3, weights="independent", time_embedding=False, dropout=0.5),
    ),
    "fcn-ls2t-normalised": (
        False,
        lambda: FCNLS2T(3, 4, 5, 2, 3, normalize=0.659, time_embedding=False),
    ),
    "sequential": (
        False,
        lambda: nn.Sequential(Difference(), Lags([0, 2]), DeepLS2T(6, 4, 1), nn.Linear(8, 2)),
    ),
    "sequential-end": (
        False,
        lambda: nn.Sequential(
            FCN(3, 4, return_sequences=True),
            nn.Sequential(nn.Linear(4, 5), nn.Tanh()),
            LS2T(5, 4, 2, return_sequences=False),
            nn.Flatten(1),
            nn.Linear(8, 2),
        ),
    ),
}


def away_from_initial(module):
    """Float64, with parameters and statistics at values where all of them have an effect."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, value in module.double().state_dict().items():
            if key.endswith(("bias", "running_mean")):
                value.uniform_(-0.5, 0.5, generator=generator)
            elif "norm" in key:
                value.uniform_(0.5, 1.5, generator=generator)
            elif key != "decay":
                value.add_(torch.randn(value.shape, generator=generator, dtype=value.dtype) / 10)
    return module


def build(name):
    torch.manual_seed(0)
    return away_from_initial(MODULES[name][1]()).eval()


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def prefixes(name, module, x):
    """What the module gives for the first t steps, t = 1, 2, …"""
    outputs = [module(x[:, :t]) for t in range(1, x.shape[1] + 1)]
    return torch.stack([y[:, -1] if MODULES[name][0] else y for y in outputs], dim=1)


def fed(stream, x, cuts, **options):
    """The outputs of all pieces."""
    places = [0, *sorted(cuts), x.shape[1]]
    return [stream.push(x[:, a:b], **options) for a, b in pairwise(places)]
