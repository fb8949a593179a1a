"""Inputs of the networks; all statistics are those of the training stays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2tens.data import (
    Batch,
    Labelled,
    PaddedIndex,
    Preparation,
    Scaler,
    Sequences,
    last_observed,
    values_at,
)
from seq2tens.data.datasets.physionet2012 import Stays
from seq2tens.estimators import forward_batch
from seq2tens.models.irregular import IrregularScaler, IrregularSource
from seq2tens.training import CrossEntropy, Loss, LossFunction, SequenceBatch, SequenceSource, Source


class Inputs(Protocol):
    """The inputs of a kind of network: their sizes, a loss, and batches of any part of the stays."""

    sizes: dict[str, Any]
    loss: LossFunction

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        ...


class Complete:
    """Complete channels: filled values, masks, times since observation, time and static features."""

    def __init__(self, stays: Stays) -> None:
        self.preparation = Preparation(since_observed=True).fit(stays.train.sequences)
        self.sizes: dict[str, Any] = {"in_features": self.preparation.n_outputs}
        self.loss: LossFunction = CrossEntropy(forward_batch)

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        return SequenceSource(self.preparation.transform(part.sequences), _labels(part))


class ZerosInFront:
    """Complete channels as in the authors' code: zeros in front of every stay, and no mask.

    The channels are the time of the last measurement of each variable, whether it was measured now, static
    features, time and filled values, all standardised after filling; unknown static features are 0. Every
    stay is padded to the length of the longest one. The network has one output, the logit of death.
    """

    def __init__(self, stays: Stays) -> None:
        train, parts = stays.train.sequences, (stays.train, stays.validation, stays.test)
        self.fill = Scaler().fit(train).mean_
        channels = self._channels(train)
        self.scaler = Scaler().fit(channels)
        self.n_steps = max(int(part.sequences.lengths.max()) for part in parts)
        self.sizes: dict[str, Any] = {"in_features": channels.n_channels}
        self.loss: LossFunction = CrossEntropy(_binary)

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        scaled = self.scaler.transform(self._channels(part.sequences))
        return FrontPadded(scaled.with_values(np.nan_to_num(scaled.values)), _labels(part), self.n_steps)

    def _channels(self, sequences: Sequences) -> Sequences:
        observed, times, starts = ~np.isnan(sequences.values), sequences.times, sequences.starts
        assert times is not None
        assert sequences.static is not None
        last = last_observed(observed, starts)
        channels = (
            times[np.maximum(last, starts[:, None])],
            observed,
            np.repeat(sequences.static, sequences.lengths, axis=0),
            times[:, None],
            values_at(sequences.values, last, np.asarray(self.fill)),
        )
        return Sequences(np.concatenate(channels, axis=1), sequences.offsets)


class FrontPadded(SequenceSource):
    """Batches of sequences that are padded to the same number of steps with zeros in front."""

    def __init__(self, sequences: Sequences, labels: Int[Tensor, " rows"], n_steps: int) -> None:
        super().__init__(sequences, labels)
        self.n_steps = n_steps

    def batch(self, rows: Tensor) -> SequenceBatch:
        """The chosen rows, without a mask: for the network, the padding is part of the sequence."""
        step = torch.arange(self.n_steps) - (self.n_steps - self.lengths[rows])[:, None]
        padding = step < 0
        indices = (self.steps.starts[rows][:, None] + step).masked_fill_(padding, 0)
        assert self.labels is not None
        values = PaddedIndex(indices, padding, None).gather(self.values)
        return SequenceBatch(values, None, self.labels[rows], None)


class AsMeasured:
    """Standardised values at the times when they were measured, for networks that handle missing values."""

    def __init__(self, stays: Stays) -> None:
        train = stays.train.sequences
        self.scaler = IrregularScaler().fit(train)
        n_static = 0 if train.static is None else train.static.shape[1]
        self.sizes: dict[str, Any] = {"n_channels": train.n_channels, "n_static": n_static, "n_classes": 2}
        self.loss: LossFunction = _loss

    def source(self, part: Labelled) -> Source:
        """Batches of a part of the stays."""
        return IrregularSource(self.scaler.transform(part.sequences), part.labels)


def _labels(part: Labelled) -> Int[Tensor, " rows"]:
    return torch.as_tensor(part.labels, dtype=torch.long)


def _binary(model: nn.Module, batch: SequenceBatch) -> tuple[Float[Tensor, "rows 2"], Tensor]:
    """Logits of both classes, from the logit of death."""
    logit, labels = forward_batch(model, batch)
    return nn.functional.pad(logit, (1, 0)), labels


def _logits(model: nn.Module, batch: tuple[Batch, Tensor]) -> tuple[Tensor, Tensor]:
    return model(batch[0]), batch[1]


_cross_entropy = CrossEntropy(_logits)


def _loss(model: nn.Module, batch: tuple[Batch, Tensor]) -> Loss:
    """Cross-entropy; in training, plus the auxiliary loss of a network that has one."""
    value = _cross_entropy(model, batch)
    if not model.training or not hasattr(model, "auxiliary_loss"):
        return value
    return value._replace(mean=value.mean + model.auxiliary_loss(batch[0]))  # type: ignore[operator]
