"""The data sets of the imputation experiment, with their training and test parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens.data import Incomplete, Scaler, from_cube, healing_mnist, mnist, physionet2012, sprites
from seq2tens.data.datasets import dataset_folder, existing_file
from seq2tens.experiments.imputation.models import SETTINGS
from seq2tens.models.gpvae import Part

# One in this many observed values of a stay is drawn, with replacement, to be hidden.
ONE_HOLE_IN = 10
# Scores depend on the order of stays. That of the published experiments, from a file system, is unknown, so
# they are averaged over this many random orders.
ORDERS = 20
# The number of sequences per block in a pass over a part.
BLOCK = 64


@dataclass(frozen=True)
class Parts:
    """The parts of a data set.

    Attributes:
        train: the training part.
        watched: a part that is scored after every epoch, only for the learning curve; or None.
        test: the part that is imputed and scored.
        labels: labels of the test part, for a classifier on imputed sequences; or None.
        binary: whether values are 0 and 1.
        orders: number of random orders of the test part over which the score of the classifier is averaged;
            0 keeps the given order.
    """

    train: Part
    watched: Part | None
    test: Part
    labels: np.ndarray | None
    binary: bool = False
    orders: int = 0


def load(dataset: str, folder: str | None) -> Parts:
    """Read or generate a data set; the same entries are missing in every run."""
    check.choice("dataset", dataset, tuple(SETTINGS))
    return _LOADERS[SETTINGS[dataset].data](folder)


def check_present(datasets: Sequence[str], folder: str | Path | None) -> None:
    """Refuse a folder without the files of these data sets; Sprites, which takes long, is not read."""
    for dataset in datasets:
        check.choice("dataset", dataset, tuple(SETTINGS))
        _PRESENCE[SETTINGS[dataset].data](folder)


class _Loader(Protocol):
    def __call__(self, folder: str | None) -> Parts: ...


def _healing_mnist(folder: str | None) -> Parts:
    """All sequences outside the test part are for training, so the test part is the watched one."""
    digits = healing_mnist.load(folder, validation=False)
    return Parts(digits.train, digits.test, digits.test, digits.test.labels, binary=True)


def _sprites(folder: str | None) -> Parts:
    figures = sprites.load(folder)
    return Parts(figures.train, None, figures.test, None)


def _physionet(folder: str | None) -> Parts:
    """The data of BRITS: set a, the last value of each hour, with hidden entries.

    The same stays are for training and test: neither outcomes nor hidden entries are used in training.
    """
    stays = physionet2012.grid(physionet2012.load_set("a", folder, pick="last").stays, pick="last")
    measured = np.flatnonzero(stays.observed.any(axis=(1, 2)))
    stays = with_holes(standardized(stays[measured]))
    return Parts(stays, None, stays, np.asarray(stays.labels), orders=ORDERS)


_LOADERS: dict[str, _Loader] = {"hmnist": _healing_mnist, "sprites": _sprites, "physionet": _physionet}


def _figures_present(folder: str | Path | None) -> None:
    files = dataset_folder(folder, "sprites")
    for name in (sprites.PALETTE, sprites.PICTURES):
        existing_file(files / name)


_PRESENCE: dict[str, Callable[[str | Path | None], object]] = {
    "hmnist": mnist.load,
    "sprites": _figures_present,
    "physionet": partial(physionet2012.load_set, "a"),
}


def standardized(part: Incomplete) -> Incomplete:
    """Scale each channel to mean 0 and variance 1 over observed entries; a constant one is only shifted."""
    scaler = Scaler().fit(from_cube(part.with_nan))
    scaled = scaler.transform(from_cube(part.truth)).values
    return replace(part, truth=scaled.reshape(part.truth.shape))


def with_holes(part: Incomplete, seed: int = 0) -> Incomplete:
    """Hide some observed entries of each sequence, as in BRITS: a tenth, less those that are drawn twice."""
    generator, observed = np.random.default_rng(seed), part.observed.copy()
    for of_sequence in observed:
        candidates = np.flatnonzero(of_sequence)
        of_sequence.flat[generator.choice(candidates, len(candidates) // ONE_HOLE_IN)] = False
    return replace(part, observed=observed)


def channel_means(part: Part) -> Float[np.ndarray, " channels"]:
    """The mean of the observed entries of each channel, computed in blocks; 0 if there are none."""
    totals: Any = 0.0
    counts: Any = 0
    for rows in blocks(len(part)):
        chosen = part[rows]
        totals = totals + chosen.values.sum(axis=(0, 1), dtype=np.float64)
        counts = counts + chosen.observed.sum(axis=(0, 1))
    return (totals / np.maximum(counts, 1)).astype(np.float32)


def blocks(n: int) -> list[np.ndarray]:
    """Row numbers in blocks."""
    return [np.arange(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
