"""The data sets of the imputation experiment, each with what is trained on and what is scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens.data import Incomplete, Scaler, healing_mnist, mnist, physionet2012, sprites
from seq2tens.data.arrays import from_cube
from seq2tens.data.datasets._folders import dataset_folder, existing
from seq2tens.experiments.imputation.models import SETTINGS
from seq2tens.models.gpvae import Part

# Sequences at a time where a part is gone through.
BLOCK = 64


@dataclass(frozen=True)
class Parts:
    """What there is of a data set.

    Attributes:
        train: what is trained on.
        validation: what is watched meanwhile, None where the paper has none; nothing is chosen by it.
        test: what is imputed and scored.
        labels: of the test part, for a classifier on imputed sequences; None where there are none.
        binary: whether values are 0 and 1.
    """

    train: Part
    validation: Part | None
    test: Part
    labels: np.ndarray | None
    binary: bool = False


def load(dataset: str, folder: str | None) -> Parts:
    """Read or make a data set; missing entries are the same in every run."""
    check.choice("dataset", dataset, tuple(SETTINGS))
    return _LOADERS[dataset](folder)


def check_present(datasets: Sequence[str], folder: str | Path | None) -> None:
    """Refuse a folder without the files of these data sets; figures, which take long, are not read."""
    for dataset in datasets:
        check.choice("dataset", dataset, tuple(SETTINGS))
        _PRESENCE[dataset](folder)


class _Loader(Protocol):
    def __call__(self, folder: str | None) -> Parts: ...


def _healing_mnist(folder: str | None) -> Parts:
    digits = healing_mnist.load(folder)
    return Parts(digits.train, digits.validation, digits.test, digits.test.labels, binary=True)


def _sprites(folder: str | None) -> Parts:
    figures = sprites.load(folder)
    return Parts(figures.train, None, figures.test, None)


def _physionet(folder: str | None) -> Parts:
    """Set a, trained on and imputed alike: what was not measured is known to nobody, and outcomes are not
    used in training.
    """
    stays = standardised(physionet2012.grid(physionet2012.load_set("a", folder).stays))
    return Parts(stays, None, stays, np.asarray(stays.labels))


_LOADERS: dict[str, _Loader] = {"hmnist": _healing_mnist, "sprites": _sprites, "physionet": _physionet}


def _figures_present(folder: str | Path | None) -> None:
    files = dataset_folder(folder, "sprites")
    for name in (sprites.PALETTE, sprites.PICTURES):
        existing(files / name)


_PRESENCE: dict[str, Callable[[str | Path | None], object]] = {
    "hmnist": mnist.load,
    "sprites": _figures_present,
    "physionet": partial(physionet2012.load_set, "a"),
}


def standardised(part: Incomplete) -> Incomplete:
    """Each channel with mean 0 and variance 1 over what was observed; a constant one is only shifted."""
    scaler = Scaler().fit(from_cube(part.with_nan))
    scaled = scaler.transform(from_cube(part.truth)).values
    return replace(part, truth=scaled.reshape(part.truth.shape))


def channel_means(part: Part) -> Float[np.ndarray, " channels"]:
    """Of all that was observed, a few sequences at a time; 0 for a channel that never was."""
    totals: Any = 0.0
    counts: Any = 0
    for rows in blocks(len(part)):
        chosen = part[rows]
        totals = totals + chosen.values.sum(axis=(0, 1), dtype=np.float64)
        counts = counts + chosen.observed.sum(axis=(0, 1))
    return (totals / np.maximum(counts, 1)).astype(np.float32)


def blocks(n: int) -> list[np.ndarray]:
    """Row numbers, a few at a time."""
    return [np.arange(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
