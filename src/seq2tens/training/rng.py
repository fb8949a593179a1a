"""Randomness that only depends on the seed and the epoch.

Each epoch seeds its own generators. So no generator state has to be carried from one epoch to the next, an
epoch that is trained again gives the same result, and the caller's generators are restored at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch

PURPOSES = ("order", "noise")


def derive(seed: int, epoch: int, purpose: Literal["order", "noise"], rank: int = 0) -> int:
    """Return a seed for one purpose in one epoch on one process."""
    sequence = np.random.SeedSequence([seed, epoch, PURPOSES.index(purpose), rank])
    return int(sequence.generate_state(1, np.uint64)[0])


def shuffling_generator(seed: int, epoch: int) -> torch.Generator:
    """Return the generator of an epoch's batches, the same on every process."""
    return torch.Generator().manual_seed(derive(seed, epoch, "order"))


def seed_noise(seed: int, epoch: int, rank: int, device: torch.device) -> None:
    """Seed the generators that dropout and similar layers use; only call it inside `isolated`."""
    value = derive(seed, epoch, "noise", rank)
    torch.default_generator.manual_seed(value)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(value)


@contextmanager
def seeded_initialization(seed: int) -> Iterator[None]:
    """Derive the initial weights of modules built inside from the seed; epoch 0 precedes all training."""
    with isolated(torch.device("cpu")):
        torch.default_generator.manual_seed(derive(seed, 0, "noise"))
        yield


@contextmanager
def isolated(device: torch.device) -> Iterator[None]:
    """Restore torch's global generators, of the CPU and of this device, at the end."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type=device.type):
        yield
