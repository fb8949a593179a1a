"""Two 3 x 3 convolutions with a ReLU between them, for pictures that are mostly zero.

What the hidden values of a pixel add to the second convolution depends only on the 3 x 3 pixels around it.
Hence it is computed once for all pixels that are surrounded by zeros, and once for every other pixel.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as torch_F

from seq2tens import functional as F

Pictures = Float[Tensor, "n height width colours"]
Patches = Float[Tensor, "patches inputs"]

# Pixels per block: with 256 filters, the hidden values of the nonzero neighbourhoods fit into the cache.
BLOCK_PIXELS = 2**14
# Number of slices of a product that threads may share.
SLICES = 16


def convolved_twice(
    pictures: Pictures,
    first: Float[Tensor, "filters colours 3 3"],
    bias: Float[Tensor, " filters"],
    second: Float[Tensor, "colours filters 3 3"],
) -> Pictures:
    """Compute `second * relu(first * pictures + bias)` with zero padding; pictures have no gradient.

    Hidden values take many times the memory of the pictures. They are computed for a few pictures at a time,
    and again for gradients: storing them would be slower.
    """
    spread = second.flip(2, 3).permute(2, 3, 0, 1).flatten(0, 2)  # what a pixel adds to those around it
    y: Tensor = _ConvolvedTwice.apply(pictures, first.permute(0, 2, 3, 1).flatten(1), bias, spread)
    return y


def fold_patches(
    busy: Bool[Tensor, "n height width"],
    added: Float[Tensor, "pixels around"],
    idle: Float[Tensor, " around"],
) -> Pictures:
    """Sum what pixels add to the 3 x 3 pixels around them, row by row with the colours last.

    Busy pixels, in order, add the rows of `added`; each of the others adds `idle`.
    """
    (n, height, width), colors = busy.shape, len(idle) // 9
    size = (n, height + 2, width + 2, colors)  # with an edge around every picture
    picture, row, column = busy.nonzero(as_tuple=True)
    corners = ((picture * size[1] + row) * size[2] + column) * colors
    rows, run = torch.arange(3, device=busy.device), torch.arange(3 * colors, device=busy.device)
    places = corners[:, None, None] + rows[:, None] * size[2] * colors + run
    total = added.new_zeros(math.prod(size)).index_add(0, places.flatten(), (added - idle).flatten())
    without = torch_F.conv_transpose2d(
        idle.new_ones(1, 1, height, width), idle.view(1, 3, 3, -1).permute(0, 3, 1, 2), padding=1
    )
    return total.view(size)[:, 1:-1, 1:-1] + without.permute(0, 2, 3, 1)


class _ConvolvedTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pictures: Tensor, first: Tensor, bias: Tensor, spread: Tensor) -> Tensor:
        ctx.save_for_backward(pictures, first, bias, spread)
        return torch.cat([_forward(block, first, bias, spread) for block in _blocks(pictures)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        pictures, *weights = ctx.saved_tensors
        totals = [torch.zeros_like(weight) for weight in weights]
        for block, gradient in zip(_blocks(pictures), _blocks(dy), strict=True):
            for total, part in zip(totals, _backward(gradient, block, *weights), strict=True):
                total += part
        return None, *totals


def _forward(pictures: Pictures, first: Tensor, bias: Tensor, spread: Tensor) -> Pictures:
    busy, patches = _patches(pictures)
    added = _product(_hidden(patches, first, bias), spread)
    return fold_patches(busy, added[: int(busy.sum())], added[-1])


def _backward(
    dy: Pictures, pictures: Pictures, first: Tensor, bias: Tensor, spread: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    busy, patches = _patches(pictures)
    hidden = _hidden(patches, first, bias)
    dbusy = _windows(dy)[busy].flatten(1)
    dall = _windows(dy.sum(0, keepdim=True)).sum((0, 1, 2)).flatten()
    dadded = torch_F.pad(dbusy, (0, 0, 0, len(patches) - len(dbusy)))
    dadded[-1] = dall - dbusy.sum(0)
    dspread = dadded.T @ hidden
    dhidden = _product(dadded, spread.T).mul_(hidden.sign_())  # the derivative of the ReLU, 0 or 1
    return (patches.T @ dhidden).T, dhidden.sum(0), dspread


def _patches(pictures: Pictures) -> tuple[Bool[Tensor, "n height width"], Patches]:
    """Find pixels with nonzero neighbourhoods, and return these; rows of zeros follow, for other pixels."""
    busy = _with_neighbors((pictures != 0).any(-1))
    patches = _windows(pictures)[busy].flatten(1)
    return busy, torch_F.pad(patches, (0, 0, 0, SLICES - len(patches) % SLICES))


def _windows(pictures: Pictures) -> Float[Tensor, "n height width 3 3 colours"]:
    """Return the 3 x 3 pixels around each pixel, 0 beyond the edge."""
    padded = torch_F.pad(pictures, (0, 0, 1, 1, 1, 1))
    return padded.unfold(1, 3, 1).unfold(2, 3, 1).permute(0, 1, 2, 4, 5, 3)


def _with_neighbors(marked: Bool[Tensor, "n height width"]) -> Bool[Tensor, "n height width"]:
    padded = torch_F.pad(marked, (1, 1, 1, 1))
    rows = padded[:, :, :-2] | padded[:, :, 1:-1] | padded[:, :, 2:]
    return rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]


def _hidden(patches: Patches, first: Tensor, bias: Tensor) -> Float[Tensor, "patches filters"]:
    return _product(patches, first, bias).relu_()


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply a linear layer with the kernel for convolutions, in slices that threads may share."""
    return F.convolve(x.unflatten(0, (SLICES, -1)), weight[..., None], bias).flatten(0, 1)


def _blocks(pictures: Pictures) -> tuple[Tensor, ...]:
    return pictures.split(max(1, BLOCK_PIXELS // pictures[0, ..., 0].numel()))
