"""A stack of normalised LS2T layers, with or without residual connections, in operations of torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as torch_F

from seq2tens.ops.batch_norm import Each, Running, Settings, normalize, normalize_product
from seq2tens.ops.chains import Chains
from seq2tens.ops.ls2t import ls2t

Steps = Float[Tensor, "batch time features"]
Mask = Bool[Tensor, "batch time"]


class Layer(NamedTuple):
    """Parameters of a layer."""

    weight: Float[Tensor, "components in_features width"]
    bias: Float[Tensor, "components width"] | None


class Options(NamedTuple):
    """What a layer computes: its chains, levels of all steps or of the last, and how they are normalised."""

    chains: Chains
    return_sequences: bool
    norm: Settings


class Shortcut(NamedTuple):
    """Linear map and normalisation: `matrix` and `shift`, then `weight` and `bias`.

    The matrix is the kernel of a convolution of one step, as it is: to change its shape takes time, too.
    """

    matrix: Float[Tensor, "channels features 1"]
    shift: Each
    weight: Each
    bias: Each


class Ends(NamedTuple):
    """Parameters outside of the stack: of the normalisation of its input, and of both shortcuts."""

    weight: Each
    bias: Each
    start: Shortcut
    end: Shortcut


def stack(
    x: Steps,
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running] = (),
) -> Tensor:
    """Each layer takes the levels of the one before, flattened; without `running` no statistics follow."""
    for (weight, bias), (chains, sequences, norm), statistics in zip_longest(layers, options, running):
        increments = x - torch_F.pad(x, (0, 0, 1, -1))
        levels, _ = ls2t(increments, weight, bias, mask=mask, chains=chains, return_sequences=sequences)
        y, mean, variance = normalize(levels, mask if sequences else None, None, None, norm)
        if statistics is not None:
            statistics.follow(mean, variance, norm.momentum)
        x = y.flatten(-2)
    return x


def residual_stack(
    features: Steps,
    x: Float[Tensor, "batch time in_features"],
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running] = (),
) -> Tensor:
    """Two sums of normalised branches around a stack, see `shortcut_stack`."""
    branch, (weight, bias, start, end) = settings._replace(scale=1.0), ends
    main = normalize(features, mask, weight, bias, branch)
    projected = normalize_product(x, start.matrix.squeeze(2), start.shift, mask, *start[2:], branch)
    levels = stack(
        (main.values + projected.values) * settings.scale, mask, layers, options, running[: len(layers)]
    )
    pooled = normalize_product(
        _mean(features, mask), end.matrix.squeeze(2), end.shift, None, *end[2:], branch
    )
    for statistics, batch in zip(running[len(layers) :], (main, projected, pooled), strict=False):
        statistics.follow(batch.mean, batch.variance, settings.momentum)
    return (levels + pooled.values) * settings.scale


def _mean(features: Tensor, mask: Tensor | None) -> Float[Tensor, "batch channels"]:
    """Over the steps that count."""
    if mask is None:
        return features.mean(1)
    return torch.where(mask[..., None], features, 0.0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
