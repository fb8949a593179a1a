"""Sampling of batches, and validation splits. All random numbers come from a given generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from seq2tens._checks import between, require
from seq2tens.data import length_buckets
from seq2tens.training.recipe import Recipe
from seq2tens.training.sources import Source

# Kinds with the same number of rows from every class in each batch; "oversampled" repeats a class at most
# this often.
BALANCED = ("balanced", "oversampled")
REPEATS = 3


class Sampler:
    """Draws the batches of an epoch, as the recipe specifies. Every epoch has `n_batches` of them."""

    def __init__(self, recipe: Recipe, source: Source) -> None:
        require(len(source) > 0, "`train` must hold at least one row, got none")
        self.kind, self.n_rows = recipe.sampling, len(source)
        self.size = min(recipe.size(self.n_rows), self.n_rows)
        self.n_batches = -(-self.n_rows // self.size)
        if self.kind == "buckets":
            self.lengths = np.asarray(_needed(source, "lengths", self.kind))
        if self.kind in BALANCED:
            self._prepare_classes(_needed(source, "labels", self.kind))

    def _prepare_classes(self, labels: Any) -> None:
        self.classes = class_rows(labels)
        sizes = [len(rows) for rows in self.classes]
        self.draws = min(sizes) if self.kind == "balanced" else min(max(sizes), REPEATS * min(sizes))
        each = self.size // len(self.classes)
        require(
            each > 0,
            f"`batch_size` must be at least the number of classes, {len(self.classes)}, "
            f"for balanced batches, got {self.size}",
        )
        self.n_batches = -(-self.draws // each)

    def epoch(self, generator: Generator) -> list[Tensor]:
        """Return the row numbers of each batch.

        Sizes differ by at most one (per class, if balanced) or, with `"remainder"`, in the last batch.
        """
        if self.kind == "buckets":
            return [torch.from_numpy(rows) for rows in length_buckets(self.lengths, self.size, generator)]
        if self.kind in BALANCED:
            return self._balanced(generator)
        shuffled = torch.randperm(self.n_rows, generator=generator)
        return list(
            shuffled.split(self.size) if self.kind == "remainder" else shuffled.tensor_split(self.n_batches)
        )

    def _balanced(self, generator: Generator) -> list[Tensor]:
        parts = []
        for rows in self.classes:
            rounds = range(-(-self.draws // len(rows)))
            order = torch.cat([torch.randperm(len(rows), generator=generator) for _ in rounds])
            chosen = rows[order[: self.draws]]
            parts.append(chosen.tensor_split(self.n_batches))
        return [torch.cat(batch) for batch in zip(*parts, strict=True)]


def _needed(source: Source, name: str, kind: str) -> Any:
    values = getattr(source, name, None)
    require(values is not None, f"`train` must have `{name}` for the sampling {kind!r}, got None")
    return values


def class_rows(labels: Any) -> list[Tensor]:
    """Return the rows of each class, classes in sorted order."""
    values = np.asarray(labels)
    require(values.ndim == 1, f"`labels` must have one axis, got shape {values.shape}")
    classes, codes = np.unique(values, return_inverse=True)
    return [torch.from_numpy(np.flatnonzero(codes == code)) for code in range(len(classes))]


def validation_split(labels: Any, fraction: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """Split rows into training and validation, stratified by class; both are returned in ascending order.

    Every class keeps at least one row for training, so a class with a single row is not in the validation
    set.
    """
    between("fraction", fraction, 0, 1)
    classes = class_rows(labels)
    counts = _apportion([len(rows) for rows in classes], fraction)
    train, validation = [], []
    for rows, count in zip(classes, counts, strict=True):
        shuffled = rows[torch.randperm(len(rows), generator=generator)]
        validation.append(shuffled[:count])
        train.append(shuffled[count:])
    return torch.cat(train).sort().values, torch.cat(validation).sort().values


def _apportion(sizes: list[int], fraction: float) -> list[int]:
    """Return the number of rows from each class: the fraction, rounded by largest remainder."""
    counts = [min(int(fraction * size), size - 1) for size in sizes]
    remaining = round(fraction * sum(sizes)) - sum(counts)
    remainders = [fraction * size - count for size, count in zip(sizes, counts, strict=True)]
    for i in sorted(range(len(sizes)), key=lambda i: -remainders[i]):
        if remaining > 0 and counts[i] < sizes[i] - 1:
            counts[i] += 1
            remaining -= 1
    return counts
