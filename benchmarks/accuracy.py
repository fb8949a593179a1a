"""Accuracy and time of classifiers with their default settings, on the data sets behind SEQ2TENS_DATA.

    python -m benchmarks.accuracy run [--datasets NAME…] [--models NAME…] [--seeds N]
    python -m benchmarks.accuracy report

A run appends one row per finished fit to `benchmarks/accuracy.csv` and skips what is there; a report writes
the table of docs/accuracy.md. Compilation is not counted: every model is fitted to a few sequences first.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pages import fill, markdown
from benchmarks.report import END, START
from seq2tens.data import Labelled, load_dataset, to_aeon
from seq2tens.experiments.tsc.published import ACCURACY

RESULTS, PAGE = Path("benchmarks/accuracy.csv"), Path("docs/accuracy.md")
SHOWN = {
    "1-NN DTW": "DTW",
    "FCN128": "FCN128",
    "ResNet": "ResNet",
    "LS2T64³": "LS2T64-3",
    "FCN64-LS2T64³": "FCN64-LS2T64-3",
    "FCN128-LS2T64³": "FCN128-LS2T64-3",
}
NOT_AT_HAND = {"CMUsubject16", "NetFlow", "PEMS", "WalkvsRun"}
PUBLISHED = {
    name: {label: scores[model].mean for label, model in SHOWN.items()}
    for name, scores in ACCURACY.items()
    if name not in NOT_AT_HAND
}


class Row(NamedTuple):
    """One finished fit."""

    dataset: str
    model: str
    seed: int
    accuracy: float
    fit_seconds: float
    predict_seconds: float


def _ours(name: str, **options: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from seq2tens.estimators import MODELS

        return MODELS[name](random_state=seed, **options)

    return make


def _multi_rocket_hydra(seed: int) -> Any:
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    return MultiRocketHydraClassifier(random_state=seed, n_jobs=-1)


def _dtw(seed: int) -> Any:
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1, n_jobs=-1)


MODELS: dict[str, Callable[[int], Any]] = {
    "fcn-ls2t": _ours("fcn-ls2t"),
    "fcn128-ls2t": _ours("fcn-ls2t", fcn_width=128),
    "ls2t": _ours("ls2t"),
    "fcn": _ours("fcn"),
    "resnet": _ours("resnet"),
    "random-ls2t": _ours("random-ls2t", n_jobs=-1),
    "multirocket-hydra": _multi_rocket_hydra,
    "dtw": _dtw,
}
EQUAL_LENGTHS_ONLY = {"multirocket-hydra"}  # gets series padded with zeros
SHORTEST = 10  # that it takes
WITHOUT_SEED = {"dtw"}


def run(datasets: Iterable[str], models: Iterable[str], seeds: int, results: Path = RESULTS) -> None:
    """Every cell that is not in the results yet, data set by data set."""
    finished = {row[:3] for row in read(results)}
    for model in models:
        for dataset in datasets:
            for seed in range(1 if model in WITHOUT_SEED else seeds):
                if (dataset, model, seed) not in finished:
                    append(measure(dataset, model, seed), results)


def measure(dataset: str, model: str, seed: int) -> Row:
    """Fit to the training half and predict the test half."""
    train, test = load_dataset(dataset)
    longest = int(max(*train.sequences.lengths, *test.sequences.lengths))
    series, unseen = (_collection(half, model, longest) for half in (train, test))
    _warm_up(MODELS[model](seed), series, train.labels)
    estimator = MODELS[model](seed)
    begin = time.perf_counter()
    estimator.fit(series, train.labels)
    if getattr(estimator, "interrupted_", False):  # what was trained in part is no result
        raise KeyboardInterrupt
    middle = time.perf_counter()
    predicted = estimator.predict(unseen)
    end = time.perf_counter()
    accuracy = float(np.mean(np.asarray(predicted) == test.labels))
    return Row(dataset, model, seed, accuracy, middle - begin, end - middle)


def _collection(half: Labelled, model: str, longest: int) -> Any:
    series = to_aeon(half.sequences)
    if model not in EQUAL_LENGTHS_ONLY:
        return series
    steps = max(longest, SHORTEST)
    return np.stack([np.pad(s, ((0, 0), (0, steps - s.shape[1]))) for s in series])


def _warm_up(estimator: Any, series: Any, labels: Any) -> None:
    """Compile what is compiled on first use."""
    first = [int(np.flatnonzero(labels == label)[k]) for label in np.unique(labels)[:2] for k in (0, 1)]
    few = series[first] if isinstance(series, np.ndarray) else [series[i] for i in first]
    if hasattr(estimator, "epochs"):
        estimator.set_params(epochs=1)
    estimator.fit(few, labels[first])
    estimator.predict(few)


def append(row: Row, results: Path) -> None:
    new = not results.exists()
    with results.open("a", newline="") as file:
        table = csv.writer(file)
        if new:
            table.writerow(Row._fields)
        table.writerow([*row[:3], *(f"{number:.4f}" for number in row[3:])])
    print(*row[:3], *(f"{number:.3f}" for number in row[3:]), flush=True)


def read(results: Path) -> list[Row]:
    """All finished fits."""
    if not results.exists():
        return []
    with results.open(newline="") as file:
        return [
            Row(r["dataset"], r["model"], int(r["seed"]), *(float(r[name]) for name in Row._fields[3:]))
            for r in csv.DictReader(file)
        ]


def tables(rows: list[Row]) -> str:
    """Accuracies beside the published ones, then seconds of fit and predict."""
    datasets = sorted({row.dataset for row in rows}, key=str.lower)
    models = [name for name in MODELS if any(row.model == name for row in rows)]
    accuracy = [
        [d, *(_accuracy(_cell(rows, d, m)) for m in models), *(f"{v:.3f}" for v in PUBLISHED[d].values())]
        for d in datasets
    ]
    seconds = [[d, *(_seconds(_cell(rows, d, m)) for m in models)] for d in datasets]
    complete = {m for m in models if all(_cell(rows, d, m) for d in datasets)}
    means = [_mean_accuracy(rows, datasets, m) if m in complete else "" for m in models]
    means += [
        f"{statistics.fmean(v):.3f}" for v in zip(*(PUBLISHED[d].values() for d in datasets), strict=True)
    ]
    accuracy.append(["mean", *means])
    seconds.append(["sum", *(_total_seconds(rows, datasets, m) if m in complete else "" for m in models)])
    published = [f"{name}, published" for name in next(iter(PUBLISHED.values()))]
    return (
        f"### Test accuracy\n\n{markdown(['data set', *models, *published], accuracy)}\n\n"
        f"### Seconds: fit + predict\n\n{markdown(['data set', *models], seconds)}\n"
    )


def _cell(rows: list[Row], dataset: str, model: str) -> list[Row]:
    return [row for row in rows if (row.dataset, row.model) == (dataset, model)]


def _accuracy(cell: list[Row]) -> str:
    values = [row.accuracy for row in cell]
    if len(values) < 2:
        return f"{values[0]:.3f}" if values else ""
    return f"{statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f} ({len(values)})"


def _seconds(cell: list[Row]) -> str:
    if not cell:
        return ""
    fit, predict = ([row[i] for row in cell] for i in (4, 5))
    return f"{statistics.fmean(fit):.1f} + {statistics.fmean(predict):.1f}"


def _mean_accuracy(rows: list[Row], datasets: list[str], model: str) -> str:
    """Of the means of all data sets."""
    means = [statistics.fmean(row.accuracy for row in _cell(rows, d, model)) for d in datasets]
    return f"{statistics.fmean(means):.3f}"


def _total_seconds(rows: list[Row], datasets: list[str], model: str) -> str:
    """Fit and predict of all data sets, each the mean of its seeds."""
    means = [statistics.fmean(row[4] + row[5] for row in _cell(rows, d, model)) for d in datasets]
    return f"{sum(means):.1f}"


def report(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Put the tables between the marks of a page."""
    fill(page, START, END, tables(read(results)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="fit and test what has not been yet")
    runner.add_argument("--datasets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    runner.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    runner.add_argument("--seeds", type=int, default=3)
    verbs.add_parser("report", help="write the tables into the documentation")
    arguments = parser.parse_args()
    if arguments.verb == "report":
        report()
    else:
        run(arguments.datasets, arguments.models, arguments.seeds)


if __name__ == "__main__":
    main()
