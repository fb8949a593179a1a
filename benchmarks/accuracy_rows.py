"""Data sets and models of the accuracy benchmark, its rows, and published results of others."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import csv_rows
from seq2tens.experiments.tsc.published import ACCURACY

RESULTS = Path("benchmarks/accuracy.csv")
RELIABILITY = "reliability.csv"  # next to the results
BINS = 10
OURS = "random-ls2t"
COMPARED = (OURS, "multirocket-hydra", "quant", "hydra", "minirocket")
# Models that are compared with the paper's results, on its data sets.
OF_THE_PAPER = ("fcn-ls2t", "fcn128-ls2t", "ls2t", "fcn", "resnet", OURS, "multirocket-hydra", "dtw")
SHOWN = {
    "1-NN DTW": "DTW",
    "FCN128": "FCN128",
    "ResNet": "ResNet",
    "LS2T64³": "LS2T64-3",
    "FCN64-LS2T64³": "FCN64-LS2T64-3",
    "FCN128-LS2T64³": "FCN128-LS2T64-3",
}
NOT_AT_HAND = {"NetFlow", "PEMS", "WalkvsRun"}
PAPER = {
    name: {label: scores[model].mean for label, model in SHOWN.items()}
    for name, scores in ACCURACY.items()
    if name not in NOT_AT_HAND
}


class Published(NamedTuple):
    """Accuracies on the default split of a data set, as published for the archive.

    If lengths differ or values are missing, they are for a version with equal lengths (`_eq`) or without
    missing values (`_nmv`), which is similar to ours but not the same.
    """

    dataset: str
    published_as: str
    accuracy: dict[str, float]


def ucr_published() -> list[Published]:
    """The published accuracies of HC2 and MR-Hydra on the univariate data sets."""
    with Path(__file__).with_name("ucr_published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Published(row["dataset"], row["published_as"], {m: float(row[m]) for m in ("HC2", "MR-Hydra")})
        for row in rows
    ]


UCR = {row.dataset: row.accuracy for row in ucr_published()}
GROUPS = {
    "univariate": tuple(UCR),
    "multivariate": (*PAPER, "Blink", "EyesOpenShut", "HandMovementDirection"),
}


class Row(NamedTuple):
    """One finished fit."""

    dataset: str
    model: str
    seed: int
    accuracy: float
    fit_seconds: float
    predict_seconds: float
    core_seconds: float = 0.0  # of fit and predict, nearly independent of other load; 0 if unknown

    @property
    def seconds(self) -> float:
        """The core-seconds if they are known, which are an upper bound of the seconds on an idle machine."""
        return self.core_seconds or self.fit_seconds + self.predict_seconds


def append(row: Row, results: Path) -> None:
    csv_rows.append([row], results)
    print(*row[:3], *(f"{number:.3f}" for number in row[3:]), flush=True)


class Bin(NamedTuple):
    """Test series whose predicted class has a probability in [`number` / `BINS`, (`number` + 1) / `BINS`)."""

    dataset: str
    model: str
    number: int
    series: int
    confidence: float  # sum of these probabilities
    correct: int

    @classmethod
    def count(cls, dataset: str, model: str, confidence: np.ndarray, correct: np.ndarray) -> list[Bin]:
        """Count the series in each bin; empty bins are left out."""
        numbers = np.minimum((confidence * BINS).astype(int), BINS - 1)
        inside = [(number, numbers == number) for number in np.unique(numbers).tolist()]
        return [
            cls(
                dataset,
                model,
                number,
                int(rows.sum()),
                float(confidence[rows].sum()),
                int(correct[rows].sum()),
            )
            for number, rows in inside
        ]


def cell(rows: list[Row], dataset: str, model: str) -> list[Row]:
    """The rows of all seeds of a cell."""
    return [row for row in rows if (row.dataset, row.model) == (dataset, model)]
