"""The mean loss of an epoch, and the guard against losses that are not numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from seq2tens.training.losses import Loss

if TYPE_CHECKING:  # importing it takes seconds
    from lightning_fabric import Fabric


class NonFiniteLoss(FloatingPointError):
    """The loss, or a weight after the epoch, was infinite or not a number."""


class Meter:
    """Collects losses without waiting for the device; `flush` looks at them all at once."""

    def __init__(self, fabric: Fabric, epoch: int) -> None:
        self.fabric, self.epoch = fabric, epoch
        self.losses: list[Tensor] = []
        self.weights: list[float] = []
        self.batches = 0
        self.sums = torch.zeros(2, dtype=torch.float64)

    def add(self, value: Loss) -> None:
        """Take note of a batch."""
        self.losses.append(value.mean.detach())
        self.weights.append(value.weight)

    def flush(self) -> int:
        """Add up what has been collected, over all processes; the number of batches."""
        n = len(self.losses)
        if n == 0:
            return 0
        weights = torch.tensor(self.weights, dtype=torch.float64)
        sums = torch.stack([torch.stack(self.losses).cpu().double() * weights, weights])
        if self.fabric.world_size > 1:
            sums = self.fabric.all_reduce(sums, reduce_op="sum").cpu()  # type: ignore[union-attr]
        self._check(sums)
        self.sums += sums.sum(dim=1)
        self.batches += n
        self.losses, self.weights = [], []
        return n

    def mean(self) -> float:
        """The mean over everything flushed, each batch with its weight."""
        return float(self.sums[0] / self.sums[1])

    def _check(self, sums: Tensor) -> None:
        wrong = (~sums[0].isfinite()).nonzero()
        if len(wrong):
            first = int(wrong[0])
            raise NonFiniteLoss(
                f"the loss must be finite, got {float(sums[0, first])} in epoch {self.epoch}, "
                f"batch {self.batches + first + 1}; checkpoints of earlier epochs are kept"
            )
