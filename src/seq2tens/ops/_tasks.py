"""Packing and sharing out: from the tensors of one call to the arguments of each kernel task."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seq2tens.ops._operation import Inputs
from seq2tens.ops.chains import Chains

LANES = 16  # functionals are padded to whole vectors of the kernels
_NO_MASK = np.empty((1, 1), bool)
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Plan(NamedTuple):
    """How one call is cut up. It depends on shapes only, so results do not depend on thread counts."""

    slices: list[tuple[int, int]]  # ranges of sequences
    groups: list[tuple[int, int]]  # ranges of functionals
    parallel: bool  # whether there is enough work to wake another thread


class Sums:
    """Arrays of each task for what is summed over sequences, and their totals in a fixed order."""

    def __init__(self, inputs: Inputs) -> None:
        self.components, self.features, self.width = inputs.weight.shape
        self.lift_order, self.depth = len(inputs.coefficients), max(inputs.chains.depth)
        self.dtype = inputs.x.dtype
        self.parts: list[tuple[slice, tuple[np.ndarray, ...]]] = []

    def new(self, start: int, stop: int) -> tuple[np.ndarray, ...]:
        width = _padded(stop - start)
        part = (
            np.zeros((self.features, self.components * width), _NUMPY[self.dtype]),
            np.zeros(self.components * width),
            np.zeros(self.lift_order * width),
            np.zeros((self.depth + 1) * width),
        )
        self.parts.append((slice(start, stop), part))
        return part

    def totals(self) -> tuple[Tensor, ...]:
        dweight = np.zeros((self.components, self.features, self.width), _NUMPY[self.dtype])
        dbias = np.zeros((self.components, self.width))
        dcoefficients = np.zeros(self.lift_order)
        dpowers = np.zeros((self.depth + 1, self.width))
        for columns, (w, b, c, p) in self.parts:
            count = columns.stop - columns.start
            dweight[:, :, columns] += w.reshape(self.features, self.components, -1)[..., :count].transpose(
                1, 0, 2
            )
            dbias[:, columns] += b.reshape(self.components, -1)[:, :count]
            dcoefficients += c.reshape(self.lift_order, -1)[:, :count].sum(1)
            dpowers[:, columns] += p.reshape(self.depth + 1, -1)[:, :count]
        return tuple(torch.from_numpy(t).to(self.dtype) for t in (dweight, dbias, dcoefficients, dpowers))


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


def steps_per_block(inputs: Inputs) -> int:
    """Steps per matrix product: as many as keep the states of a block within a core's cache."""
    return 64 if len(inputs.component) * inputs.weight.shape[2] <= 2048 else 32


@lru_cache(maxsize=1024)
def make_plan(x_shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> Plan:
    """As many slices of the batch as there is work for; a batch of one to three is cut by functionals too."""
    (batch, length, features), (components, _, width) = x_shape, weight_shape
    worth = batch * length * components * width * (features + 8) // 2_000_000  # about 50 µs each
    slices = max(1, min(batch, worth, 16))
    groups = max(1, min(4 // slices, worth // slices, width // LANES))
    return Plan(_ranges(batch, slices), _ranges(width, groups), slices * groups > 1)


def _ranges(size: int, parts: int) -> list[tuple[int, int]]:
    cuts = [size * i // parts for i in range(parts + 1)]
    return list(pairwise(cuts))


def to_array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def group_arguments(inputs: Inputs, start: int, stop: int) -> tuple[np.ndarray, ...]:
    """x, weight, bias, coefficients, powers and mask for a range of functionals.

    The vectors stand side by side, (features, components · width), so that one product serves all.
    """
    components, features, _ = inputs.weight.shape
    count, width, dtype = stop - start, _padded(stop - start), _NUMPY[inputs.x.dtype]
    weight = np.zeros((features, components, width), dtype)
    weight[..., :count] = inputs.weight.numpy()[:, :, start:stop].transpose(1, 0, 2)
    bias = np.zeros((components, width), dtype)
    if inputs.bias is not None:
        bias[:, :count] = inputs.bias.numpy()[:, start:stop]
    powers = np.ones((max(inputs.chains.depth) + 1, width))
    if inputs.powers is not None:
        powers[:, :count] = inputs.powers.numpy()[:, start:stop]
    return (
        to_array(inputs.x),
        weight.reshape(features, -1),
        bias.reshape(-1),
        inputs.coefficients.numpy().astype(np.float64),
        powers.reshape(-1),
        _NO_MASK if inputs.mask is None else to_array(inputs.mask),
    )


def chain_arguments(inputs: Inputs, width: int) -> tuple[np.ndarray, ...]:
    """Component, parent and depth of each state, runs of states, and the state of each level."""
    return _chain_arrays(inputs.chains, _padded(width))


@lru_cache(maxsize=256)
def _chain_arrays(chains: Chains, width: int) -> tuple[np.ndarray, ...]:
    # the kernels put the empty word first, as state 0
    component, depth = (0, *chains.component), (0, *chains.depth)
    parent, output = ([p + 1 for p in part] for part in ((-1, *chains.parent), chains.output))
    runs: list[list[int]] = []
    for state in range(1, len(component)):
        here = [state, parent[state], component[state], 1]
        if runs and here[:3] == [number + runs[-1][3] for number in runs[-1][:3]]:
            runs[-1][3] += 1
        else:
            runs.append(here)
    lists = (component, parent, depth, np.multiply(runs, width), output)
    return tuple(np.array(values, dtype=np.int64) for values in lists)
