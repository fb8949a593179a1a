"""Losses and metrics on data that is not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2tens._checks import require
from seq2tens.training.losses import Loss, LossFunction
from seq2tens.training.sources import Source

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Metric = Callable[..., float]
# Without gradients there is room for more rows than in training.
ROWS = 64


def validate(
    module: nn.Module,
    loss: LossFunction,
    source: Source,
    metrics: Mapping[str, Metric],
    fabric: Fabric,
    batch_size: int,
) -> dict[str, float]:
    """The mean loss and every metric of the joined outputs, names prefixed with `validation_`."""
    module.eval()
    order = _order(source)
    with torch.no_grad():
        values = [
            Loss(*loss(module, fabric.to_device(source.batch(rows))))
            for rows in order.split(max(ROWS, batch_size))
        ]
    total = sum(value.weight for value in values)
    mean = sum(float(value.mean) * value.weight for value in values) / total
    outputs = _joined(values, order) if metrics else []
    scores = {f"validation_{name}": float(metric(*outputs)) for name, metric in metrics.items()}
    return {"validation_loss": mean, **scores}


def _order(source: Source) -> Tensor:
    """Rows of similar length together, if the source knows lengths: little of a batch is padding then."""
    lengths = getattr(source, "lengths", None)
    if lengths is None:
        return torch.arange(len(source))
    return torch.argsort(torch.as_tensor(lengths), stable=True)


def _joined(values: list[Loss], order: Tensor) -> list[Tensor]:
    """Outputs of all rows, in the order of the source."""
    require(
        all(value.outputs for value in values),
        "`loss` must return outputs as its third value where there are `metrics`, got none",
    )
    back = torch.argsort(order)
    return [torch.cat(parts).cpu()[back] for parts in zip(*(value.outputs for value in values), strict=True)]
