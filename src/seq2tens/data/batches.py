"""Mini-batches: padded tensors, and the grouping of sequences by length."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.data.sequences import Rows, Sequences

# Lengths are perturbed by up to this fraction before sorting, so that batches vary with little padding.
JITTER = 0.1
# Padded steps of a block: with 256 channels, tens of megabytes for each layer.
BLOCK_STEPS = 2**15


class Batch(NamedTuple):
    """Sequences padded on the right to the longest of them; padding and missing entries are 0.

    `static` is not filled: it is NaN where unknown.
    """

    values: Float[Tensor, "batch time channels"]
    lengths: Int[Tensor, " batch"]
    observed: Bool[Tensor, "batch time channels"] | None = None
    times: Float[Tensor, "batch time"] | None = None
    static: Float[Tensor, "batch features"] | None = None

    @property
    def mask(self) -> Bool[Tensor, "batch time"]:
        """True where a step belongs to the sequence."""
        steps = torch.arange(self.values.shape[1], device=self.lengths.device)
        return steps < self.lengths[:, None]

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        return Batch._make(None if field is None else field.to(device) for field in self)


def collate(sequences: Sequences, rows: Rows | None = None, dtype: torch.dtype = torch.float32) -> Batch:
    """Pad the chosen sequences (default: all) into one batch.

    `observed` is None if nothing is missing in this batch. The time axis has at least one step, so that
    layers accept a batch of empty sequences.
    """
    chosen = sequences if rows is None else sequences[rows]
    inside = np.arange(max(1, chosen.lengths.max(initial=0))) < chosen.lengths[:, None]
    observed = ~np.isnan(chosen.values)
    return Batch(
        _tensor(_pad(np.where(observed, chosen.values, 0), inside), dtype),
        torch.from_numpy(chosen.lengths),
        None if observed.all() else torch.from_numpy(_pad(observed, inside)),
        None if chosen.times is None else _tensor(_pad(chosen.times, inside), dtype),
        None if chosen.static is None else _tensor(chosen.static.copy(), dtype),
    )


def _pad(packed: np.ndarray, inside: Bool[np.ndarray, "batch time"]) -> np.ndarray:
    padded = np.zeros(inside.shape + packed.shape[1:], dtype=packed.dtype)
    padded[inside] = packed
    return padded


def _tensor(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(array).to(dtype)


class PaddedIndex(NamedTuple):
    """Positions of the steps of sequences in a tensor of all steps; `lengths` is None without padding."""

    steps: Int[Tensor, "rows time"]
    padding: Bool[Tensor, "rows time"] | None
    lengths: Int[Tensor, " rows"] | None

    def gather(self, packed: Shaped[Tensor, "steps channels"]) -> Shaped[Tensor, "rows time channels"]:
        """Return the steps at these positions, padded with zeros."""
        values = packed.index_select(0, self.steps.flatten()).view(*self.steps.shape, -1)
        return values if self.padding is None else values.masked_fill_(self.padding[..., None], 0)


class PackedSteps(NamedTuple):
    """Starts of the sequences in a tensor of all their steps, from which batches are gathered.

    Padding every sequence to the longest of all would be no faster, and could need any amount of memory.
    """

    starts: Int[Tensor, " sequences"]
    lengths: Int[Tensor, " sequences"]

    @classmethod
    def of(cls, sequences: Sequences) -> PackedSteps:
        """Return the starts and lengths of packed sequences."""
        return cls(torch.tensor(sequences.offsets[:-1]), torch.tensor(sequences.lengths))

    def padded(self, rows: Int[Tensor, " rows"]) -> PaddedIndex:
        """Return the index of the chosen sequences, with at least one step."""
        lengths = self.lengths[rows]
        longest = max(1, int(lengths.max()))
        step = torch.arange(longest)
        index = self.starts[rows][:, None] + step
        if int(lengths.min()) == longest:
            return PaddedIndex(index, None, None)
        padding = step >= lengths[:, None]
        return PaddedIndex(index.masked_fill_(padding, 0), padding, lengths)


def content_digest(*parts: Shaped[Tensor | np.ndarray, "*shape"] | None) -> str:
    """Return a hash of all entries, by which a checkpoint detects that it belongs to other data."""
    total = hashlib.sha256()
    for part in parts:
        total.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def length_buckets(
    lengths: Int[np.ndarray, " sequences"],
    batch_size: int,
    generator: torch.Generator | np.random.Generator | None = None,
) -> list[Int[np.ndarray, " batch"]]:
    """Split row numbers into batches of similar lengths, so that there is little padding.

    Batch sizes are at most `batch_size` and differ by at most one, so that no small batch is left over. With
    a generator, lengths are perturbed a little before sorting and the batches come in random order; without
    one the result is sorted by length.
    """
    lengths = np.asarray(lengths)
    check.positive_int("batch_size", batch_size)
    check.require(lengths.ndim == 1, f"`lengths` must have one axis, got shape {lengths.shape}")
    if len(lengths) == 0:
        return []
    n_batches = -(-len(lengths) // batch_size)
    if generator is None:
        return np.array_split(np.argsort(lengths, kind="stable"), n_batches)
    varied = np.maximum(lengths, 1) * (1 + JITTER * (2 * _uniform(generator, len(lengths)) - 1))
    batches = np.array_split(np.argsort(varied, kind="stable"), n_batches)
    return [batches[i] for i in np.argsort(_uniform(generator, n_batches))]


def length_blocks(
    lengths: Int[np.ndarray, " sequences"], steps: int = BLOCK_STEPS
) -> list[Int[np.ndarray, " block"]]:
    """Split row numbers into blocks of similar lengths of at most `steps` padded steps, shortest first.

    Processing by blocks bounds memory, however many sequences there are. A sequence that is longer than
    `steps` is a block by itself.
    """
    lengths = np.asarray(lengths)
    check.positive_int("steps", steps)
    check.require(lengths.ndim == 1, f"`lengths` must have one axis, got shape {lengths.shape}")
    order = np.argsort(lengths, kind="stable")
    blocks, start = [], 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or (stop + 1 - start) * max(1, lengths[order[stop]]) > steps:
            blocks.append(order[start:stop])
            start = stop
    return blocks


def _uniform(generator: torch.Generator | np.random.Generator, n: int) -> Float[np.ndarray, " n"]:
    if isinstance(generator, np.random.Generator):
        return generator.random(n)
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"`generator` must be a torch.Generator or numpy.random.Generator, got {type(generator).__name__}"
        )
    draws = torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64)
    return draws.cpu().numpy()
