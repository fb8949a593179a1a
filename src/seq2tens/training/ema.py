"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class EMA:
    """The averaged copy of a model. Buffers, such as running statistics, are the model's own.

    Early averages forget faster, (1 + n) / (10 + n) after n steps, so that a short run is not stuck at
    its first weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.model = decay, model
        self.averaged = AveragedModel(model, multi_avg_fn=self._mix)

    def _mix(self, averaged: Sequence[Tensor], current: Sequence[Tensor], n: Tensor | int) -> None:
        decay = min(self.decay, (1 + int(n)) / (10 + int(n)))
        torch._foreach_lerp_(list(averaged), list(current), 1 - decay)

    def update(self) -> None:
        """Take the model's present weights in."""
        self.averaged.update_parameters(self.model)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Exchange the model's weights for the averaged ones, and back at the end."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for weight, average in zip(self.model.parameters(), self.averaged.module.parameters(), strict=True):
            weight.data, average.data = average.data, weight.data
