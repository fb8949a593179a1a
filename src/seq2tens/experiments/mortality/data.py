"""From stays to what networks are trained on; all statistics are those of the training stays."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from seq2tens.data import Labelled, Preparation
from seq2tens.data.batches import Batch
from seq2tens.data.datasets.physionet2012 import Stays
from seq2tens.estimators.networks import forward
from seq2tens.models.irregular import IrregularScaler, IrregularSource
from seq2tens.training import CrossEntropy, Loss, SequenceSource, Source
from seq2tens.training.losses import LossFunction


class Inputs(Protocol):
    """What a kind of network needs: the sizes of its input, a loss, and batches of any part of the stays."""

    sizes: dict[str, Any]
    loss: LossFunction

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        ...


class Complete:
    """Complete channels: filled values, whether and how long ago each was measured, time, static features."""

    def __init__(self, stays: Stays) -> None:
        self.preparation = Preparation(since_observed=True).fit(stays.train.sequences)
        self.sizes: dict[str, Any] = {"in_features": self.preparation.n_outputs}
        self.loss: LossFunction = CrossEntropy(forward)

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        return SequenceSource(
            self.preparation.transform(part.sequences), torch.as_tensor(part.labels, dtype=torch.long)
        )


class AsMeasured:
    """Values where and when they were measured, standardised; the network deals with gaps itself."""

    def __init__(self, stays: Stays) -> None:
        train = stays.train.sequences
        self.scaler = IrregularScaler().fit(train)
        n_static = 0 if train.static is None else train.static.shape[1]
        self.sizes: dict[str, Any] = {"n_channels": train.n_channels, "n_static": n_static, "n_classes": 2}
        self.loss: LossFunction = _loss

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        return IrregularSource(self.scaler.transform(part.sequences), part.labels)


def _logits(model: nn.Module, batch: tuple[Batch, Tensor]) -> tuple[Tensor, Tensor]:
    return model(batch[0]), batch[1]


_cross_entropy = CrossEntropy(_logits)


def _loss(model: nn.Module, batch: tuple[Batch, Tensor]) -> Loss:
    """Cross-entropy; in training with what a network learns besides, such as to restore what was hidden."""
    value = _cross_entropy(model, batch)
    if not model.training or not hasattr(model, "auxiliary_loss"):
        return value
    return value._replace(mean=value.mean + model.auxiliary_loss(batch[0]))  # type: ignore[operator]
