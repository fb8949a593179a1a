"""Coverage of prediction sets on the data sets in SEQ2TENS_DATA.

    python -m benchmarks.coverage [--datasets NAME…] [--folders ucr uea tsc]

Appends a row per data set to `benchmarks/coverage.csv`, skips data sets that are there, and prints the table.
Sets come from one fit on the training half. They are compared with split conformal prediction with the same
scores: a fit on one half of the training half, and scores from the other. For intervals of numbers see
`benchmarks.regression`.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks import csv_rows
from benchmarks.pages import markdown
from seq2tens.data import Labelled, Split, read
from seq2tens.estimators import RandomLS2TClassifier
from seq2tens.estimators.random import conformal

DATA = Path(os.environ.get("SEQ2TENS_DATA", "data"))
RESULTS = Path("benchmarks/coverage.csv")
FEWEST = 100  # the minimum number of training series


class Row(NamedTuple):
    """The coverage on one data set."""

    dataset: str
    series: int
    accuracy: float
    covered: float
    size: float
    split_covered: float
    split_size: float


def data_sets(folders: list[str], names: list[str] | None) -> Iterator[tuple[str, Split]]:
    """Yield the data sets with enough training series."""
    for path in sorted(path for folder in folders for path in (DATA / folder).glob("*.npz")):
        split = read(path)
        assert isinstance(split, Split)
        if len(split.train) >= FEWEST and (names is None or path.stem in names):
            yield path.stem, split


def classes(name: str, split: Split, coverage: float, blocks: int) -> Row:
    train, test = split
    whole = fitted(train, blocks)
    codes = np.searchsorted(whole.classes_, test.labels)
    sets = whole.predict_set(test.sequences, coverage)
    accuracy = float((whole.predict_proba(test.sequences).argmax(axis=1) == codes).mean())
    half_sets, known = split_sets(train, test, coverage, blocks)
    half_codes = np.searchsorted(known, test.labels)
    return Row(name, len(train), accuracy, *held(sets, codes), *held(half_sets, half_codes))


def held(sets: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """The fraction of sets that contain the class, and the mean size of the sets."""
    return float(sets[np.arange(len(codes)), codes].mean()), float(sets.sum(axis=1).mean())


def split_sets(
    train: Labelled, test: Labelled, coverage: float, blocks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sets of split conformal prediction, with half of each class for the model, and the model's classes."""
    order = np.argsort(train.labels, kind="stable")
    model = fitted(train[np.sort(order[::2])], blocks)
    rest = train[np.sort(order[1::2])]
    codes = torch.from_numpy(np.searchsorted(model.classes_, rest.labels))
    scores = conformal.class_scores(torch.from_numpy(model.predict_proba(rest.sequences)), codes)
    probabilities = torch.from_numpy(model.predict_proba(test.sequences))
    return conformal.prediction_set(probabilities, scores, coverage).numpy(), model.classes_


def fitted(half: Labelled, blocks: int) -> RandomLS2TClassifier:
    return RandomLS2TClassifier(n_blocks=blocks, n_jobs=-1, random_state=0).fit(half.sequences, half.labels)


def run(
    folders: list[str], names: list[str] | None, coverage: float, blocks: int, results: Path = RESULTS
) -> None:
    """Run all data sets that are not in the results yet."""
    finished = {row.dataset for row in stored(results)}
    for name, split in data_sets(folders, names):
        if name not in finished:
            csv_rows.append([classes(name, split, coverage, blocks)], results)
            print(name, flush=True)


def stored(results: Path) -> list[Row]:
    """Read all rows, sorted by name."""
    return sorted(csv_rows.read(Row, results), key=lambda row: row.dataset.lower())


def report(rows: list[Row]) -> str:
    """The table of all data sets and their mean."""
    means = (statistics.fmean(column) for column in list(zip(*rows, strict=True))[2:])
    rows = [*rows, Row(f"mean of {len(rows)}", sum(row.series for row in rows), *means)]
    header = ["data set", "series", "accuracy", "covered", "size", "covered, split", "size, split"]
    return markdown(header, [[r.dataset, str(r.series), *(f"{v:.3f}" for v in r[2:])] for r in rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--folders", nargs="+", default=["ucr", "uea", "tsc"])
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--blocks", type=int, default=40)
    options = parser.parse_args()
    run(options.folders, options.datasets, options.coverage, options.blocks)
    print(report(stored(RESULTS)))


if __name__ == "__main__":
    main()
