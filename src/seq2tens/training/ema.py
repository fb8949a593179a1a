"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class EMA:
    """A copy of a model with averaged weights. Buffers, such as running statistics, are not averaged.

    Early on the decay is smaller, at most (1 + n) / (10 + n) after n steps, so that the average of a short
    run is not dominated by its first weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.model = decay, model
        self.averaged = AveragedModel(model, multi_avg_fn=self._mix)

    def _mix(self, averaged: Sequence[Tensor], current: Sequence[Tensor], n: Tensor | int) -> None:
        decay = min(self.decay, (1 + int(n)) / (10 + int(n)))
        torch._foreach_lerp_(list(averaged), list(current), 1 - decay)

    def update(self) -> None:
        """Update the average with the current weights of the model."""
        self.averaged.update_parameters(self.model)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Swap the model's weights for the averaged ones while the context is active."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for weight, average in zip(self.model.parameters(), self.averaged.module.parameters(), strict=True):
            weight.data, average.data = average.data, weight.data
