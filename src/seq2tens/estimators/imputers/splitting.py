"""Split of the data of an imputer into a training and a validation part."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int

from seq2tens.data import Sequences, held_out
from seq2tens.models.imputation import GapSource, Hide, hidden_entries
from seq2tens.training import seeded_initialization

# For training, sequences are cut into pieces of at most this many steps.
LONGEST_PIECE = 256
# With fewer pieces than this, entries are held out rather than whole pieces.
FEWEST_PIECES = 10
# Fraction that is held out; if this is not `ENOUGH` pieces, more are held out, up to the fraction `MOST`.
HELD_OUT, ENOUGH, MOST = 0.1, 20, 0.2
# Number of copies of a held-out piece, each with other hidden entries.
COPIES = 4


class Split(NamedTuple):
    """Sequences for training, and those for validation with the piece of each.

    `hidden` marks the entries of the latter that are hidden as in training, `missing_elsewhere`
    those that another sequence lacks at the same position.
    """

    train: Sequences
    validation: Sequences
    hidden: Bool[np.ndarray, "steps channels"]
    missing_elsewhere: Bool[np.ndarray, "steps channels"]
    piece: Int[np.ndarray, " sequences"]


def split(X: Sequences, hide: Hide, seed: int) -> Split:
    """Hold out some of the pieces or, if there are few, a tenth of the observed entries."""
    generator, parts = np.random.default_rng([seed, 1]), pieces(X)
    if len(parts) < FEWEST_PIECES:
        values, hidden = held_out(parts.values, HELD_OUT, generator)
        return Split(parts.with_values(values), parts, hidden, np.zeros_like(hidden), np.arange(len(parts)))
    order = generator.permutation(len(parts))
    n_held_out = max(math.ceil(HELD_OUT * len(parts)), min(ENOUGH, math.ceil(MOST * len(parts))))
    chosen = np.tile(np.sort(order[:n_held_out]), COPIES)
    validation = parts[chosen]
    train, hidden = parts[np.sort(order[n_held_out:])], _hidden(validation, hide, seed)
    return Split(train, validation, hidden, _missing_elsewhere(validation, train, generator), chosen)


def pieces(X: Sequences) -> Sequences:
    """Cut long sequences into pieces of nearly equal length."""
    counts = np.maximum(-(-X.lengths // LONGEST_PIECE), 1)
    if (counts == 1).all():
        return X
    lengths = np.concatenate(
        [
            [len(part) for part in np.array_split(np.empty(n), count)]
            for n, count in zip(X.lengths.tolist(), counts.tolist(), strict=True)
        ]
    )
    static = None if X.static is None else np.repeat(X.static, counts, axis=0)
    return Sequences(X.values, np.concatenate([[0], np.cumsum(lengths)]), X.times, static)


def _hidden(X: Sequences, hide: Hide, seed: int) -> Bool[np.ndarray, "steps channels"]:
    """Choose entries to hide as in training, reproducibly for a seed."""
    batch = GapSource(X).batch(torch.arange(len(X)))
    with seeded_initialization(seed):
        hidden = hidden_entries(batch.observed, hide).numpy()
    inside = np.arange(hidden.shape[1]) < X.lengths[:, None]
    return hidden[inside]


def _missing_elsewhere(
    X: Sequences, others: Sequences, generator: np.random.Generator
) -> Bool[np.ndarray, "steps channels"]:
    """Choose the observed entries of each sequence that one of the others, repeated if shorter, lacks."""
    other = np.repeat(generator.integers(len(others), size=len(X)), X.lengths)
    steps = others.offsets[other] + X.positions % np.maximum(others.lengths[other], 1)
    return np.isnan(others.values[steps]) & ~np.isnan(X.values)
