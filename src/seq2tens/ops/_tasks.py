"""Packing and sharing out: from the tensors of one call to the record that the kernels read."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seq2tens.ops._calls import AT, FIELDS
from seq2tens.ops._operation import Inputs
from seq2tens.ops.chains import Chains

LANES = 16  # functionals are padded to whole vectors of the kernels
_CACHE = 32 * 1024  # bytes for four float32 vectors of states: old and new values, base and change


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


def steps_per_block(weight_shape: tuple[int, ...]) -> int:
    """Steps per matrix product: as many as keep its result well within a core's cache."""
    components, _, width = weight_shape
    return max(32, min(256, 40960 // (components * width) // 32 * 32))


def make_plan(x_shape: tuple[int, ...], weight_shape: tuple[int, ...], states: int) -> Plan:
    """As many slices of the batch as there is work for, and as many groups as their states fit the cache.

    A batch of one to three is cut by functionals too.
    """
    (batch, length, features), (components, _, width) = x_shape, weight_shape
    block = steps_per_block(weight_shape)
    worth = batch * length * components * width * (features + 8) // 1_500_000  # about 20 µs each
    slices = max(1, min(batch, worth - worth % 2, 16))  # an even number for two threads
    vectors = -(-width // LANES)
    per_group = min(-(-vectors * slices // min(4, worth or 1)) if batch < 4 else vectors, vectors)
    per_group = _even_share(vectors, max(1, min(per_group, _CACHE // (states * LANES * 16))))
    together = max(1, block // length)
    return Plan(slices, -(-vectors // per_group), per_group * LANES, block, together)


def _even_share(vectors: int, most: int) -> int:
    """Vectors per group, at most `most`: the same for all groups where that costs less than half of them."""
    even = next(n for n in range(most, 0, -1) if vectors % n == 0)
    return even if 2 * even > most else most


class Key(NamedTuple):
    """All of a call but the values of its tensors."""

    x_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    chains: Chains
    lift_order: int
    lifted: bool  # whether more is asked for than the plain recursion
    has_bias: bool
    has_mask: bool
    reverse: bool
    sequences: bool
    keep: bool
    difference: bool


class Layout(NamedTuple):
    """What calls with the same key share: the plan, and a record without the addresses of tensors."""

    plan: Plan
    record: array[int]
    order: int
    joined: bool
    arrays: dict[str, Tensor]  # kept alive, the record knows where they are


class Call:
    """One call to the kernels: its record, and the tensors whose addresses stand in it."""

    def __init__(self, inputs: Inputs, by_coefficients: bool = False, difference: bool = False) -> None:
        self.inputs = inputs
        plain = inputs.powers is None and inputs.coefficients.tolist() == [1.0]
        self.lifted = by_coefficients or not plain
        key = Key(
            tuple(inputs.x.shape), tuple(inputs.weight.shape), inputs.chains, len(inputs.coefficients),
            self.lifted, inputs.bias is not None, inputs.mask is not None,
            inputs.reverse, inputs.return_sequences, inputs.keep, difference,
        )  # fmt: skip
        self.layout = make_layout(key)
        self.plan, self.record = self.layout.plan, self.layout.record[:]
        self.tensors: list[Tensor] = []
        self._set_inputs()

    def set(self, **tensors: Tensor) -> None:
        """Write the addresses of tensors into the record."""
        for name, tensor in tensors.items():
            self.tensors.append(tensor)
            self.record[AT[name]] = tensor.data_ptr()

    def _set_inputs(self) -> None:
        inputs, dtype = self.inputs, self.inputs.x.dtype
        components, _, width = inputs.weight.shape
        bias = inputs.x.new_zeros(components, width) if inputs.bias is None else inputs.bias
        self.set(
            x=inputs.x.contiguous(),
            weight=self._grouped(inputs.weight.transpose(0, 1), dtype, 0.0),
            bias=self._grouped(bias, dtype, 0.0),
        )
        if self.lifted:
            powers = inputs.powers
            if powers is None:
                powers = torch.ones(self.layout.order + 1, width)
            self.set(
                coefficients=inputs.coefficients.double(),
                powers=self._grouped(powers, torch.float64, 1.0),
            )
        if inputs.mask is not None:
            self.set(mask=inputs.mask.contiguous())

    def _grouped(self, values: Tensor, dtype: torch.dtype, padding: float) -> Tensor:
        """Functionals, the last axis, cut into groups and padded: group by group, each contiguous."""
        groups, width = self.plan.groups, self.plan.group_width
        missing = groups * width - values.shape[-1]
        if missing > 0:
            values = torch.nn.functional.pad(values, (0, missing), value=padding)
        if groups > 1:
            values = values.unflatten(-1, (groups, width)).movedim(-2, 0)
        return values.to(dtype).contiguous()

    def new_sums(self) -> None:
        """Memory for what is summed over sequences, a part for each task, and for the sums."""
        weight, x = self.inputs.weight, self.inputs.x
        (components, features, full), tasks, width = weight.shape, self.plan.tasks, self.plan.group_width
        parts = x.new_empty(tasks, features, components, width)
        dbias = x.new_empty(tasks, components, width, dtype=torch.float64)
        self.dweight, self.dbias = x.new_empty(weight.shape), x.new_empty(components, full)
        self.set(dweight=parts, dbias=dbias, weight_total=self.dweight, bias_total=self.dbias)
        if self.lifted:
            rows = (len(self.inputs.coefficients), self.layout.order + 1)
            self.dcoefficients, self.dpowers = (
                x.new_empty(tasks, n, width, dtype=torch.float64) for n in rows
            )
            self.set(dcoefficients=self.dcoefficients, dpowers=self.dpowers)

    def lift_totals(self) -> tuple[Tensor, Tensor]:
        """Derivatives by coefficients and powers, summed in a fixed order."""
        dtype, x = self.inputs.x.dtype, self.inputs.x
        if not self.lifted:
            return x.new_zeros(1), x.new_zeros(self.layout.order + 1, self.inputs.weight.shape[2])
        coefficients = self._ungrouped(self.dcoefficients).sum(-1)
        return coefficients.to(dtype), self._ungrouped(self.dpowers).to(dtype)

    def _ungrouped(self, parts: Tensor) -> Tensor:
        """Sum over slices and put the groups side by side again."""
        groups, slices = self.plan.groups, self.plan.slices
        if groups == 1:
            joined = parts[0] if slices == 1 else parts.sum(0)
        else:
            joined = parts.unflatten(0, (groups, slices)).sum(1).movedim(0, -2).flatten(-2)
        return joined[..., : self.inputs.weight.shape[2]]


@lru_cache(maxsize=1024)
def make_layout(key: Key) -> Layout:
    """Sizes, switches and chains of a call."""
    (batch, length, features), (components, _, width) = key.x_shape, key.weight_shape
    plan = make_plan(key.x_shape, key.weight_shape, len(key.chains.component) + 1)
    blocks, states, levels = -(-length // plan.block), len(key.chains.component), len(key.chains.output)
    arrays, order = _chain_arrays(key.chains, plan.group_width), max(key.chains.depth)
    even = plan.groups * plan.group_width == width
    joined = even and not key.lifted and states_are_levels(key.weight_shape, key.chains, key.sequences)
    fields = dict(
        batch=batch, length=length, features=features, components=components, width=width,
        states=states + 1, levels=levels, group_width=plan.group_width, slices=plan.slices,
        tasks=plan.tasks, block=plan.block, blocks=blocks, together=plan.together,
        scratch_size=_scratch_size(plan, states + 1, features, components, key.lift_order),
        lift_order=key.lift_order, run_count=arrays["runs"].shape[0],
        power_size=(order + 1) * plan.group_width, state_size=batch * states * width,
        out_size=batch * length * levels * width if key.sequences else 0,
        kept_size=batch * blocks * states * width if key.keep else 0,
        has_bias=key.has_bias, has_mask=key.has_mask, lifted=key.lifted, reverse=key.reverse,
        sequences=key.sequences, keep=key.keep, joined=joined, difference=key.difference,
        shared=sorted(key.chains.component) != list(range(components)),
        **{name: tensor.data_ptr() for name, tensor in arrays.items()},
    )  # fmt: skip
    return Layout(plan, array("q", [int(fields.get(name, 0)) for name in FIELDS]), order, joined, arrays)


def states_are_levels(weight_shape: tuple[int, ...], chains: Chains, sequences: bool) -> bool:
    """Whether there is one chain, whose states are the output and lie there in whole vectors."""
    levels = tuple(range(weight_shape[0]))
    chain = Chains(levels, tuple(m - 1 for m in levels), levels)
    return sequences and chains == chain and weight_shape[2] % LANES == 0


def _scratch_size(plan: Plan, states: int, features: int, components: int, lift_order: int) -> int:
    """Bytes that a thread needs: block-wise products and states, their adjoints, single states."""
    rows, width = plan.block + 1, plan.group_width
    numbers = rows * (features + width * (2 * components + states)) + 7 * states * width
    return 8 * (numbers + 10 * (lift_order + 16)) + 16 * 64


def _chain_arrays(chains: Chains, width: int) -> dict[str, Tensor]:
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
    arrays = {name: torch.tensor(values, dtype=torch.int64) for name, values in lists.items()}
    return {**arrays, "runs": torch.tensor(runs, dtype=torch.int64) * width}
