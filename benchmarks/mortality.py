"""A profile of the mortality experiment: an epoch of FCN-LS2T and FCN with the published settings.

Times are CPU seconds on one thread, which other load on the machine hardly changes.

SEQ2TENS_DATA=/path/to/data python -m benchmarks.mortality
"""

from __future__ import annotations

import time

import torch
from lightning_fabric import Fabric
from torch.profiler import ProfilerActivity, profile

from seq2tens.data import physionet2012
from seq2tens.data.datasets.physionet2012 import Stays
from seq2tens.experiments.mortality import experiment as mortality
from seq2tens.experiments.mortality.data import Inputs
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.recipes import PAPER
from seq2tens.training.loop import make_optimizer
from seq2tens.training.metrics import validate
from seq2tens.training.rng import seeded_initialization, shuffling_generator
from seq2tens.training.sampling import Sampler

# The number of training steps of an epoch that are timed.
STEPS = {"fcn-ls2t": 10, "fcn": 60}
# Kinds of operations by prefixes of their names; the first match counts.
KINDS = {
    "LS2T": ("_Unobserved", "_Observed"),
    "normalisation": ("_BatchNorm",),
    "products (convolutions, heads)": ("_Convolve", "aten::mm", "aten::addmm", "aten::bmm"),
    "optimiser": ("aten::_fused_adam", "Optimizer."),
}
REST = "copies, sums, dropout and the rest"


def shares(profiled: profile) -> dict[str, float]:
    """The fraction of the total time by kind of operation."""
    seconds = dict.fromkeys([*KINDS, REST], 0.0)
    for event in profiled.key_averages():
        kinds = [kind for kind, names in KINDS.items() if event.key.startswith(names)]
        seconds[kinds[0] if kinds else REST] += event.self_cpu_time_total
    total = sum(seconds.values())
    return {kind: part / total for kind, part in seconds.items()}


def epoch(name: str, inputs: Inputs, stays: Stays) -> tuple[float, float, dict[str, float]]:
    """Seconds of training and validation, and the fractions of training by kind of operation."""
    setup = MODELS[name].setups[PAPER]
    with seeded_initialization(0):
        network = setup.network(inputs, setup.settings)
    recipe, train = setup.training(setup.settings, 1), inputs.source(stays.train)
    optimizer, sampler = make_optimizer(network, recipe, fused=True), Sampler(recipe, train)
    batches = iter(sampler.epoch(shuffling_generator(0, 1)))

    def step() -> None:
        inputs.loss(network, train.batch(next(batches)))[0].backward()
        optimizer.step()
        optimizer.zero_grad()

    network.train()
    for _ in range(3):  # warm-up: compilation and allocation
        step()
    begin = time.process_time()
    for _ in range(STEPS[name]):
        step()
    training = (time.process_time() - begin) / STEPS[name] * sampler.n_batches
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(STEPS[name] // 2):
            step()
    watched = inputs.source(stays.validation)
    begin = time.process_time()
    validate(network, inputs.loss, watched, mortality.METRICS, Fabric(devices=1), 1)
    return training, time.process_time() - begin, shares(profiled)


def main() -> None:
    """Print the times."""
    torch.set_num_threads(1)
    stays = physionet2012.load()
    for name in STEPS:
        training, validation, parts = epoch(name, MODELS[name].setups[PAPER].inputs(stays), stays)
        print(f"{MODELS[name].label}: training {training:.1f} s, validation {validation:.1f} s per epoch")
        for kind, part in parts.items():
            print(f"  {part:6.1%}  {kind}")


if __name__ == "__main__":
    main()
