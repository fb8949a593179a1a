"""Every fused operation once: values and derivatives of a problem large enough for several threads.

Each takes `place`, which may put a tensor somewhere else in memory, and returns tensors to be compared.
"""

import torch

from seq2tens import functional as F
from seq2tens.algebra import seq2tens, signature
from seq2tens.ops.batch_norm import Running, Settings
from seq2tens.ops.batch_norm import batch_norm as normalize


class Draw:
    """Random numbers of a seed, as leaves of a graph."""

    def __init__(self, place):
        self.generator, self.place, self.leaves = torch.Generator().manual_seed(0), place, []

    def __call__(self, *shape, scale=1.0):
        self.leaves.append(self.place(torch.randn(*shape, generator=self.generator) * scale).requires_grad_())
        return self.leaves[-1]

    def mask(self, batch, time):
        steps = torch.randint(1, time + 1, (batch, 1), generator=self.generator)
        return self.place(torch.arange(time) < steps)

    def results(self, *values):
        """The values, and the derivatives of the first by all that was drawn."""
        return *values, *torch.autograd.grad(values[0].square().mean(), self.leaves)


def ls2t(place, batch=16, time=500, features=8, **options):
    draw = Draw(place)
    x, weight, bias = draw(batch, time, features, scale=0.1), draw(3, features, 32), draw(3, 32)
    return draw.results(*F.ls2t(x, weight, bias, order=3, return_state=True, **options))


def ls2t_at_the_end(place):
    return ls2t(place, return_sequences=False)


def ls2t_of_one_level(place):
    draw = Draw(place)
    x, weight, bias = draw(16, 500, 9, scale=0.1), draw(1, 9, 64), draw(1, 64)
    return draw.results(F.ls2t(x, weight, bias, order=1))


def ls2t_of_a_long_sequence(place):
    return ls2t(place, batch=1, time=9000, features=3)


def ls2t_with_everything(place):
    draw = Draw(place)
    x, weight, bias = draw(16, 300, 9, scale=0.1), draw(6, 9, 20), draw(6, 20)
    coefficients, state = draw(2), draw(16, 6, 20)
    options = {"lift_coefficients": coefficients, "decay": place(torch.linspace(0.5, 1, 20))}
    options |= {"mask": draw.mask(16, 300), "state": state, "return_state": True}
    found = F.ls2t(x, weight, bias, order=3, weights="independent", reverse=True, lift_order=2, **options)
    return draw.results(*found)


def windows(place):
    draw = Draw(place)
    given = [draw(3, 500, 5, scale=0.1), draw(3, 5, 20), draw(3, 20)]
    with torch.no_grad():
        return (F.sliding_ls2t(given[0], 40, *given[1:], order=3, mask=draw.mask(3, 500)),)


def intervals(place):
    draw = Draw(place)
    given = [draw(3, 500, 5, scale=0.1), draw(3, 5, 20), draw(3, 20)]
    start, stop = torch.randint(0, 501, (2, 2000), generator=draw.generator).sort(0).values
    with torch.no_grad():
        return (F.PrefixLS2T(*given, order=3)(place(start), place(stop)),)


def full_map(place):
    draw = Draw(place)
    return draw.results(seq2tens(draw(37, 300, 4, scale=0.1), 3, "exp").flatten())


def full_map_of_many_coordinates(place):
    draw = Draw(place)
    return draw.results(signature(draw(5, 80, 16, scale=0.1), 3).flatten())


def batch_norm(place):
    draw = Draw(place)
    running = Running(place(torch.ones(9)), place(torch.ones(9)), 0.3)
    y = normalize(draw(40, 100, 9, 8), draw.mask(40, 100), draw(9), draw(9), running, Settings(1e-3, 8))
    return draw.results(y, running.mean, running.variance)


def convolution(place):
    draw = Draw(place)
    return draw.results(F.convolve(draw(24, 100, 9), draw(70, 9, 5), draw(70)))


def differences(place):
    draw = Draw(place)
    return draw.results(F.difference(draw(24, 100, 130)))


OPERATIONS = [
    ls2t, ls2t_at_the_end, ls2t_of_one_level, ls2t_of_a_long_sequence, ls2t_with_everything, windows,
    intervals, full_map, full_map_of_many_coordinates, batch_norm, convolution, differences,
]  # fmt: skip


def as_they_are(tensor):
    return tensor


def results_of(operations, place=as_they_are):
    return {operation.__name__: operation(place) for operation in operations}


def assert_same_bits(found, expected):
    for name, values in expected.items():
        different = [i for i, value in enumerate(values) if not torch.equal(found[name][i], value)]
        assert not different, f"{name}: results {different} differ"
