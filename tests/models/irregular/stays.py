"""Small irregular sequences with everything that real ones have."""

import numpy as np
import torch

from seq2tens.data import Sequences, collate
from seq2tens.models.irregular import NETWORKS

CHANNELS, STATIC = 3, 2
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SMALL = {
    "gru-simple": {"width": 4},
    "gru-d": {"width": 4},
    "phased-lstm": {"width": 4},
    "ip-nets": {"width": 4, "n_references": 7},
    "transformer": {"width": 8, "depth": 2, "heads": 2},
    "seft": {"width": 6, "heads": 2, "time_width": 4, "channel_width": 3},
    "latent-ode": {"width": 4, "latent": 3, "hidden": 5, "n_grid": 6},
}


def stays(lengths=(6, 1, 9, 4), seed=0, n_static=STATIC):
    """Sequences within 48 hours, half of the entries missing.

    The third channel of the third sequence is never observed, its second step has no observation at all, and
    an entry of the static features is unknown.
    """
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(n, CHANNELS)) for n in lengths]
    for array in arrays:
        array[rng.random(array.shape) < 0.5] = np.nan
    arrays[1][0, 0] = 0.7
    if len(arrays) > 2:
        arrays[2][:, 2] = np.nan
        arrays[2][1] = np.nan
    times = [np.sort(rng.uniform(0, 48, n)) for n in lengths]
    static = rng.normal(size=(len(lengths), n_static)) if n_static else None
    if static is not None:
        static[0, 0] = np.nan
    return Sequences.from_list(arrays, times, static)


def batch(sequences, rows=None):
    return collate(sequences, rows, dtype=torch.float64)


def build(name, *, n_static=STATIC, seed=0, training=False, **options):
    """A small network in double precision, away from initial values at which parameters have no effect."""
    torch.manual_seed(seed)
    network = NETWORKS[name](CHANNELS, n_static, **SMALL[name] | options).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return network.train(training)
