"""A profile of the imputation experiment on Healing MNIST: an epoch of both GP-VAEs.

Times are CPU seconds on one thread, which other load on the machine hardly changes.

SEQ2TENS_DATA=/path/to/data python -m benchmarks.turning_digits
"""

from __future__ import annotations

import time

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.mortality import shares
from seq2tens.data import healing_mnist
from seq2tens.experiments.imputation.models import MODELS, SETTINGS, network
from seq2tens.models.gpvae.loss import NegativeElbo
from seq2tens.models.gpvae.sources import IncompleteSource
from seq2tens.training.loop import make_optimizer
from seq2tens.training.rng import seeded_initialization

NAMES = ("gp-vae", "gp-vae-bls2t")
SEQUENCES = 60_000  # per epoch
STEPS, WARM, PROFILED = 10, 3, 5


def epoch(name: str, digits: IncompleteSource) -> tuple[float, dict[str, float]]:
    """Seconds of training, and its fractions by kind of operation."""
    with seeded_initialization(0):
        model = network("hmnist", name).train()
    recipe, loss = SETTINGS["hmnist"].recipe(1), NegativeElbo()
    optimizer = make_optimizer(model, recipe, fused=True)
    batches = iter(torch.arange(len(digits)).split(recipe.batch_size))

    def step() -> None:
        loss(model, digits.batch(next(batches)))[0].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm or torch.inf)
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(WARM):
        step()
    begin = time.process_time()
    for _ in range(STEPS):
        step()
    seconds = (time.process_time() - begin) / STEPS
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(PROFILED):
            step()
    return seconds * SEQUENCES / recipe.batch_size, shares(profiled)


def main() -> None:
    """Print the times."""
    torch.set_num_threads(1)
    n = (WARM + STEPS + PROFILED) * SETTINGS["hmnist"].batch_size
    digits = IncompleteSource(healing_mnist.load(validation=False, limit=n).train)
    for name in NAMES:
        seconds, parts = epoch(name, digits)
        print(f"{MODELS[name].label}: {seconds:.1f} s per epoch")
        for kind, part in parts.items():
            print(f"  {part:6.1%}  {kind}")


if __name__ == "__main__":
    main()
