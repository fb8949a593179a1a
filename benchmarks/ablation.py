"""An ablation study of the random features, by leave-one-out validation on training data.

    python -m benchmarks.ablation [--datasets NAME…] [--seeds N]

Features are computed once per data set and seed; a variant is a subset of their columns, with its own penalty
and temperature, chosen as the classifier chooses them. The printed table has means over data sets, and the
numbers of data sets on which a variant is better and worse than the default. Ctrl-C prints it for the data
sets so far. Test data are never used.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from benchmarks.accuracy_rows import GROUPS
from benchmarks.pages import markdown
from seq2tens.data import Labelled, load_dataset
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TFeatures
from seq2tens.estimators.random import ridge
from seq2tens.estimators.random.blocks import DESIGNS, KERNELS, NEWEST, Design
from seq2tens.estimators.random.probabilities import best_inverse_temperature

LARGE = {"ArabicDigits", "AUSLAN"}
DATASETS = tuple(name for group in GROUPS.values() for name in group if name not in LARGE)
DEFAULT = "default"
BLOCKS, ORDER = RandomLS2TClassifier.n_blocks, RandomLS2TClassifier.order
CONTESTS = {"wins", "losses"}
DIGITS = 6  # smaller differences are rounding errors

Columns = Bool[np.ndarray, " features"]


class Score(NamedTuple):
    """Scores of leave-one-out predictions for training series."""

    accuracy: float
    log_loss: float


class Layout(NamedTuple):
    """The block, pool and level of each column of a table of features."""

    block: np.ndarray
    pool: np.ndarray
    level: np.ndarray

    @classmethod
    def of(cls, design: Design, n_blocks: int) -> Layout:
        """The layout of a design; columns are ordered by block, then pool, then level."""
        parts = [(pool, 1) for pool in design.convolutions]
        parts += [(pool, level) for pool in design.levels for level in range(2, ORDER + 1)]
        pools, levels = (np.repeat(column, KERNELS) for column in zip(*parts, strict=True))
        return cls(
            np.arange(n_blocks).repeat(len(pools)), np.tile(pools, n_blocks), np.tile(levels, n_blocks)
        )


def variants(design: Design) -> dict[str, Columns]:
    """The columns of each variant, in a table with twice the default number of blocks."""
    layout = Layout.of(design, 2 * BLOCKS)
    usual, convolution = layout.block < BLOCKS, layout.level == 1
    chosen = {
        DEFAULT: usual,
        f"{BLOCKS // 2} blocks": layout.block < BLOCKS // 2,
        f"{2 * BLOCKS} blocks": np.ones_like(usual),
        **{f"levels up to {m}": usual & (layout.level <= m) for m in range(ORDER - 1, 0, -1)},
        "levels above 1 only": usual & ~convolution,
    }
    for pool in design.convolutions:
        chosen[f"without {pool} of convolutions"] = usual & ~(convolution & (layout.pool == pool))
    for pool in design.levels if len(design.levels) > 1 else ():  # else no level would be left
        chosen[f"without {pool} of levels"] = usual & (convolution | (layout.pool != pool))
    chosen["without contests"] = usual & ~np.isin(layout.pool, list(CONTESTS))
    return chosen


def evaluate(train: Labelled, seed: int) -> dict[str, Score]:
    """The scores of all variants, and of the pools of earlier designs."""
    rows, labels = sample(train, seed)
    features = RandomLS2TFeatures(n_blocks=2 * BLOCKS, order=ORDER, n_jobs=-1, random_state=seed)
    features.fit(train.sequences)
    table = standardized(features, rows)
    scores = {
        name: score(table[:, torch.from_numpy(chosen)], labels)
        for name, chosen in variants(DESIGNS[NEWEST]).items()
    }
    for number in sorted(DESIGNS.keys() - {NEWEST}):
        # drawn and calibrated in the same way, but with other pools
        features.n_blocks, features.design_ = BLOCKS, number
        features.blocks_, features.calibrations_ = features._draw(), features.calibrations_[:BLOCKS]
        scores[f"design {number}"] = score(standardized(features, rows), labels)
    return scores


def sample(train: Labelled, seed: int) -> tuple[Labelled, Tensor]:
    """The series for leave-one-out validation, and the indices of their classes."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(train))[: ridge.SAMPLE])
    labels = np.unique(np.asarray(train.labels), return_inverse=True)[1]
    return train[rows], torch.from_numpy(labels[rows])


def standardized(features: RandomLS2TFeatures, rows: Labelled) -> Float[Tensor, "rows features"]:
    table = torch.from_numpy(features.transform(rows.sequences))
    return ridge.standardize(table, *ridge.statistics(table, torch.ones(len(table))))


def score(table: Float[Tensor, "rows features"], labels: Tensor) -> Score:
    """The score of a ridge classifier with these features."""
    weights = torch.ones(len(table))
    targets = 2.0 * torch.nn.functional.one_hot(labels) - 1
    folds = ridge.neighbors(labels.numpy())
    _, _, held_out = ridge.choose_penalty(table, targets, weights, folds, ridge.PENALTIES)
    scores = held_out.double() * best_inverse_temperature(held_out, labels, weights)
    accuracy = (scores.argmax(dim=1) == labels).double().mean()
    return Score(float(accuracy), float(torch.nn.functional.cross_entropy(scores, labels)))


def run(datasets: Sequence[str], seeds: int) -> Iterator[dict[str, Score]]:
    """Yield the scores of each data set, averaged over seeds."""
    for dataset in datasets:
        train = load_dataset(dataset).train
        by_seed = [evaluate(train, seed) for seed in range(seeds)]
        scores = {name: Score(*np.mean([s[name] for s in by_seed], axis=0).tolist()) for name in by_seed[0]}
        print(dataset, *(f"{value:.4f}" for value in scores[DEFAULT]), file=sys.stderr, flush=True)
        yield scores


def table(scores: Sequence[dict[str, Score]]) -> str:
    """The table with a row for each variant; higher accuracy and lower log-loss are better."""
    lines = []
    for name in scores[0]:
        means = [f"{mean:.4f}" for mean in np.mean([by_variant[name] for by_variant in scores], axis=0)]
        gains = np.array([np.subtract(s[name], s[DEFAULT]) for s in scores]).round(DIGITS)
        counts = [f"{(g > 0).sum()} / {(g < 0).sum()}" for g in (gains[:, 0], -gains[:, 1])]
        lines.append([name, *means, *(counts if name != DEFAULT else ["", ""])])
    header = ["variant", "accuracy", "log-loss", "accuracy: wins / losses", "log-loss: wins / losses"]
    return markdown(header, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    names = [name for group in GROUPS.values() for name in group]
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=names)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(arguments)
    finished: list[dict[str, Score]] = []
    with contextlib.suppress(KeyboardInterrupt):
        for scores in run(options.datasets, options.seeds):
            finished.append(scores)
    if finished:
        print(f"{len(finished)} data sets, {options.seeds} seed(s)\n\n{table(finished)}")


if __name__ == "__main__":
    main()
