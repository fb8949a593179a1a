"""Measurements of an epoch: its mean loss, and loss and metrics on the validation data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2tens._checks import require
from seq2tens.training.losses import Loss, LossFunction
from seq2tens.training.sources import Source

if TYPE_CHECKING:  # importing it takes seconds
    from lightning_fabric import Fabric

Metric = Callable[..., float]
# Without gradients there is room for more rows than in training, but the activations of wide networks should
# still fit into the cache.
VALIDATION_ROWS = 32


class NonFiniteLoss(FloatingPointError):
    """Raised if the loss, or a weight after the epoch, is infinite or NaN."""


class MeanLoss:
    """Collects losses without waiting for the device; `flush` reads them all at once."""

    def __init__(self, fabric: Fabric, epoch: int) -> None:
        self.fabric, self.epoch = fabric, epoch
        self.losses: list[Tensor] = []
        self.weights: list[float] = []
        self.batches = 0
        self.sums = torch.zeros(2, dtype=torch.float64)

    def add(self, loss: Loss) -> None:
        """Add the loss of a batch."""
        self.losses.append(loss.mean.detach())
        self.weights.append(loss.weight)

    def flush(self) -> int:
        """Sum the collected losses over all processes, and return the number of batches."""
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
        """Return the weighted mean over all flushed batches."""
        return float(self.sums[0] / self.sums[1])

    def _check(self, sums: Tensor) -> None:
        wrong = (~sums[0].isfinite()).nonzero()
        if len(wrong):
            first = int(wrong[0])
            raise NonFiniteLoss(
                f"the loss must be finite, got {float(sums[0, first])} in epoch {self.epoch}, "
                f"batch {self.batches + first + 1}; checkpoints of earlier epochs are kept"
            )


def validate(
    module: nn.Module,
    loss: LossFunction,
    source: Source,
    metrics: Mapping[str, Metric],
    fabric: Fabric,
    batch_size: int,
) -> dict[str, float]:
    """Return the mean loss and all metrics of the joined outputs, with the prefix `validation_`."""
    module.eval()
    order = _by_length(source)
    with torch.no_grad():
        losses = [
            Loss(*loss(module, fabric.to_device(source.batch(rows))))
            for rows in order.split(max(VALIDATION_ROWS, batch_size))
        ]
    total = sum(loss.weight for loss in losses)
    mean = sum(float(loss.mean) * loss.weight for loss in losses) / total
    outputs = _join_outputs(losses, order) if metrics else []
    scores = {f"validation_{name}": float(metric(*outputs)) for name, metric in metrics.items()}
    return {"validation_loss": mean, **scores}


def _by_length(source: Source) -> Tensor:
    """Return the rows sorted by length, if the source knows lengths, so that batches need little padding."""
    lengths = getattr(source, "lengths", None)
    if lengths is None:
        return torch.arange(len(source))
    return torch.argsort(torch.as_tensor(lengths), stable=True)


def _join_outputs(losses: list[Loss], order: Tensor) -> list[Tensor]:
    """Return the outputs of all rows, in the order of the source."""
    require(
        all(loss.outputs for loss in losses),
        "`loss` must return outputs as its third value if there are `metrics`, got none",
    )
    back = torch.argsort(order)
    return [torch.cat(parts).cpu()[back] for parts in zip(*(loss.outputs for loss in losses), strict=True)]
