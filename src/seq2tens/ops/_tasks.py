"""Packing and sharing out: from the tensors of one call to the record that the kernels read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seq2tens.ops._calls import CALL
from seq2tens.ops._operation import Inputs
from seq2tens.ops.chains import Chains

LANES = 16  # functionals are padded to whole vectors of the kernels
_CACHE = 32 * 1024  # bytes for four float32 vectors of states: old and new values, base and change
_EMPTY = dict.fromkeys(CALL.names or (), 0)
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Plan(NamedTuple):
    """How one call is cut up. It depends on shapes only, so results do not depend on thread counts."""

    slices: int  # ranges of sequences
    groups: int  # ranges of functionals
    group_width: int  # functionals of a group, padded
    block: int  # steps per matrix product
    together: int  # short sequences that share one

    @property
    def tasks(self) -> int:
        """Every slice of every group is a task."""
        return self.slices * self.groups


def steps_per_block(inputs: Inputs) -> int:
    """Steps per matrix product: as many as keep its result well within a core's cache."""
    components, _, width = inputs.weight.shape
    return max(32, min(256, 40960 // (components * width) // 32 * 32))


@lru_cache(maxsize=1024)
def make_plan(x_shape: tuple[int, ...], weight_shape: tuple[int, ...], states: int, block: int) -> Plan:
    """As many slices of the batch as there is work for, and as many groups as their states fit the cache.

    A batch of one to three is cut by functionals too.
    """
    (batch, length, features), (components, _, width) = x_shape, weight_shape
    worth = batch * length * components * width * (features + 8) // 4_000_000  # about 50 µs each
    slices = max(1, min(batch, worth, 16))
    vectors = -(-width // LANES)
    per_group = min(-(-vectors * slices // min(4, worth or 1)) if slices < 4 else vectors, vectors)
    per_group = max(1, min(per_group, _CACHE // (states * LANES * 16)))
    together = max(1, block // length)
    return Plan(slices, -(-vectors // per_group), per_group * LANES, block, together)


class Call:
    """One call to the kernels: the fields of its record, and the arrays whose addresses they hold."""

    def __init__(self, inputs: Inputs, lifted: bool) -> None:
        self.inputs = inputs
        shapes = (tuple(inputs.x.shape), tuple(inputs.weight.shape))
        self.plan = make_plan(*shapes, len(inputs.component) + 1, steps_per_block(inputs))
        self.chains = _chain_arrays(inputs.chains, self.plan.group_width)
        self.fields: dict[str, int] = dict(_EMPTY)
        self.arrays: list[Any] = []
        self._set_sizes(lifted)
        self._set_inputs()

    def set(self, **values: int | np.ndarray | Tensor) -> None:
        """Fill fields: numbers, or arrays and tensors for their addresses."""
        for name, value in values.items():
            if isinstance(value, int):
                self.fields[name] = value
                continue
            self.arrays.append(value)
            self.fields[name] = value.data_ptr() if isinstance(value, Tensor) else value.ctypes.data

    def _set_sizes(self, lifted: bool) -> None:
        inputs, plan = self.inputs, self.plan
        (batch, length, features), (components, _, width) = inputs.x.shape, inputs.weight.shape
        blocks, states, levels = -(-length // plan.block), len(inputs.component), len(inputs.output)
        plain = inputs.powers is None and inputs.coefficients.tolist() == [1.0]
        self.fields.update(
            batch=batch, length=length, features=features, components=components, width=width,
            states=states + 1, levels=levels, group_width=plan.group_width, slices=plan.slices,
            tasks=plan.tasks, block=plan.block, blocks=blocks, together=plan.together,
            scratch_size=self._scratch_size(states + 1, features, components),
            lift_order=len(inputs.coefficients),
            power_size=(self.chains.order + 1) * plan.group_width, state_size=batch * states * width,
            out_size=batch * length * levels * width if inputs.return_sequences else 0,
            kept_size=batch * blocks * states * width if inputs.keep else 0,
            has_bias=inputs.bias is not None, has_mask=inputs.mask is not None,
            lifted=lifted or not plain, reverse=inputs.reverse, sequences=inputs.return_sequences,
            keep=inputs.keep, joined=self._is_joined(plain and not lifted),
            shared=sorted(inputs.component) != list(range(components)),
        )  # fmt: skip

    def _is_joined(self, plain: bool) -> bool:
        """Whether there is one chain, whose states are the output and lie there as in the scan."""
        inputs = self.inputs
        levels = range(inputs.weight.shape[0])
        chain = inputs.chains == Chains(tuple(levels), tuple(m - 1 for m in levels), tuple(levels))
        whole = self.plan.group_width == inputs.weight.shape[2] and inputs.mask is None
        return plain and chain and whole and inputs.return_sequences

    def _scratch_size(self, states: int, features: int, components: int) -> int:
        """Bytes that a thread needs: block-wise products and states, their adjoints, single states."""
        rows, width = self.plan.block + 1, self.plan.group_width
        numbers = rows * (features + width * (2 * components + states)) + 6 * states * width
        return 8 * (numbers + 10 * (len(self.inputs.coefficients) + 16)) + 16 * 64

    def _set_inputs(self) -> None:
        inputs, dtype = self.inputs, _NUMPY[self.inputs.x.dtype]
        self.fields.update(self.chains.addresses)
        self.set(
            x=inputs.x.contiguous(),
            weight=self._grouped(inputs.weight.numpy().transpose(1, 0, 2), dtype, 0.0),
            coefficients=inputs.coefficients.numpy().astype(np.float64),
        )
        groups, columns = self.plan.groups, self.plan.group_width * inputs.weight.shape[0]
        bias = np.zeros((groups, columns), dtype)
        self.set(bias=bias if inputs.bias is None else self._grouped(inputs.bias.numpy(), dtype, 0.0))
        if inputs.powers is not None:
            self.set(powers=self._grouped(inputs.powers.numpy(), np.float64, 1.0))
        elif self.fields["lifted"]:
            self.set(powers=np.ones(self.plan.groups * self.fields["power_size"]))
        if inputs.mask is not None:
            self.set(mask=inputs.mask.contiguous())

    def _grouped(self, values: np.ndarray, dtype: Any, padding: float) -> np.ndarray:
        """Functionals, the last axis, cut into groups and padded: group by group, each contiguous."""
        groups, width = self.plan.groups, self.plan.group_width
        if groups * width > values.shape[-1]:
            padded = np.full((*values.shape[:-1], groups * width), padding, dtype)
            padded[..., : values.shape[-1]] = values
            values = padded
        if groups > 1:
            values = np.moveaxis(values.reshape(*values.shape[:-1], groups, width), -2, 0)
        return np.ascontiguousarray(values, dtype)

    def new_sums(self) -> None:
        """Zeros for what is summed over sequences, a part for each task."""
        (components, features, _), dtype = self.inputs.weight.shape, _NUMPY[self.inputs.x.dtype]
        tasks, width = self.plan.tasks, self.plan.group_width
        self.dweight = np.zeros((tasks, features, components, width), dtype)
        self.dbias = np.zeros((tasks, components, width))
        self.dcoefficients = np.zeros((tasks, len(self.inputs.coefficients), width))
        self.dpowers = np.zeros((tasks, self.chains.order + 1, width))
        self.set(
            dweight=self.dweight, dbias=self.dbias, dcoefficients=self.dcoefficients, dpowers=self.dpowers
        )

    def totals(self) -> tuple[Tensor, ...]:
        """Derivatives by weight, bias, coefficients and powers, summed in a fixed order."""
        dweight = self._ungrouped(self.dweight).transpose(1, 0, 2)
        found = (
            dweight,
            self._ungrouped(self.dbias),
            self._ungrouped(self.dcoefficients).sum(-1),
            self._ungrouped(self.dpowers),
        )
        return tuple(torch.from_numpy(np.ascontiguousarray(t)).to(self.inputs.x.dtype) for t in found)

    def _ungrouped(self, parts: np.ndarray) -> np.ndarray:
        """Sum over slices and put the groups side by side again."""
        groups, slices = self.plan.groups, self.plan.slices
        joined = parts[0]
        if slices * groups > 1:
            parts = parts.reshape(groups, slices, *parts.shape[1:])
            total = parts[:, 0]
            for i in range(1, slices):
                total += parts[:, i]
            joined = np.moveaxis(total, 0, -2).reshape(*joined.shape[:-1], -1)
        return joined[..., : self.inputs.weight.shape[2]]


class _ChainArrays(NamedTuple):
    order: int
    addresses: dict[str, int]
    arrays: dict[str, np.ndarray]  # kept alive


@lru_cache(maxsize=256)
def _chain_arrays(chains: Chains, width: int) -> _ChainArrays:
    """Component, parent and depth of every state, runs of states, and the state of every level."""
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
    lists = {"component": component, "parent": parent, "depth": depth, "output": output}
    arrays = {name: np.array(values, np.int64) for name, values in lists.items()}
    arrays["runs"] = np.array(runs, np.int64) * width
    addresses = {name: array.ctypes.data for name, array in arrays.items()}
    return _ChainArrays(max(depth), {**addresses, "run_count": len(runs)}, arrays)
