"""Accuracy and time of classifiers with their default settings, on the data sets in SEQ2TENS_DATA.

    python -m benchmarks.accuracy run [--groups NAME…] [--datasets NAME…] [--models NAME…] [--seeds N]
    python -m benchmarks.accuracy report

A run appends one row per finished fit to `benchmarks/accuracy.csv` and skips fits that are there; a report
writes the tables and figures of docs/accuracy.md. Times do not include compilation: every model is fitted to
a few sequences first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import csv_rows
from benchmarks.accuracy_report import report
from benchmarks.accuracy_rows import (
    COMPARED,
    GROUPS,
    RELIABILITY,
    RESULTS,
    Bin,
    Row,
    append,
)
from seq2tens.data import Sequences, load_dataset, to_aeon


def _ours(name: str, **options: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from seq2tens.estimators import MODELS

        return MODELS[name](random_state=seed, **options)

    return make


def _aeon(kind: str, name: str, **options: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        return getattr(import_module(f"aeon.classification.{kind}"), name)(random_state=seed, **options)

    return make


def _dtw(seed: int) -> Any:
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1, n_jobs=-1)


MODELS: dict[str, Callable[[int], Any]] = {
    "random-ls2t": _ours("random-ls2t", n_jobs=-1),
    "multirocket-hydra": _aeon("convolution_based", "MultiRocketHydraClassifier", n_jobs=-1),
    "quant": _aeon("interval_based", "QUANTClassifier"),  # has no `n_jobs`
    "hydra": _aeon("convolution_based", "HydraClassifier", n_jobs=-1),
    "minirocket": _aeon("convolution_based", "MiniRocketClassifier", n_jobs=-1),
    "fcn-ls2t": _ours("fcn-ls2t"),
    "fcn128-ls2t": _ours("fcn-ls2t", fcn_width=128),
    "ls2t": _ours("ls2t"),
    "fcn": _ours("fcn"),
    "resnet": _ours("resnet"),
    "dtw": _dtw,
}
# For these, missing values are interpolated linearly and series are padded with zeros.
EQUAL_AND_COMPLETE = {"multirocket-hydra", "quant", "hydra", "minirocket"}
SHORTEST = 10  # the minimum length for all of them
WITHOUT_SEED = {"dtw"}


def run(datasets: Iterable[str], models: Iterable[str], seeds: int, results: Path = RESULTS) -> None:
    """Run every cell that is not in the results yet, data set by data set."""
    finished = {row[:3] for row in csv_rows.read(Row, results)}
    models = list(models)
    for dataset in datasets:
        for model in models:
            for seed in range(1 if model in WITHOUT_SEED else seeds):
                if (dataset, model, seed) not in finished:
                    row, bins = measure(dataset, model, seed)
                    append(row, results)
                    if seed == 0:
                        csv_rows.append(bins, results.with_name(RELIABILITY))


def measure(dataset: str, model: str, seed: int) -> tuple[Row, list[Bin]]:
    """Fit on the training half and predict the test half."""
    train, test = load_dataset(dataset)
    series, unseen = collections(train.sequences, test.sequences, model)
    _warm_up(MODELS[model](seed), series, train.labels)
    estimator = MODELS[model](seed)
    begin, core_begin = time.perf_counter(), time.process_time()
    estimator.fit(series, train.labels)
    if getattr(estimator, "interrupted_", False):  # an incomplete training is not a result
        raise KeyboardInterrupt
    middle = time.perf_counter()
    probabilities = np.asarray(estimator.predict_proba(unseen))
    end, core_end = time.perf_counter(), time.process_time()
    correct = np.asarray(estimator.classes_)[probabilities.argmax(axis=1)] == test.labels
    row = Row(
        dataset, model, seed, float(correct.mean()), middle - begin, end - middle, core_end - core_begin
    )
    return row, Bin.count(dataset, model, probabilities.max(axis=1), correct)


def collections(train: Sequences, test: Sequences, model: str) -> tuple[Any, Any]:
    """Both halves in the format that the model accepts."""
    if model not in EQUAL_AND_COMPLETE:
        return to_aeon(train), to_aeon(test)
    from seq2tens.estimators import LinearImputer

    imputer = LinearImputer().fit(train)
    steps = max(SHORTEST, int(train.lengths.max()), int(test.lengths.max()))
    train, test = (imputer.transform(half) if np.isnan(half.values).any() else half for half in (train, test))
    return _padded(train, steps), _padded(test, steps)


def _padded(sequences: Sequences, steps: int) -> np.ndarray:
    return np.stack([np.pad(s, ((0, 0), (0, steps - s.shape[1]))) for s in to_aeon(sequences)])


def _warm_up(estimator: Any, series: Any, labels: Any) -> None:
    """Fit and predict a few sequences, so that code is compiled before it is timed."""
    first = [int(row) for label in np.unique(labels)[:2] for row in np.flatnonzero(labels == label)[:2]]
    few = series[first] if isinstance(series, np.ndarray) else [series[i] for i in first]
    if hasattr(estimator, "epochs"):
        estimator.set_params(epochs=1)
    estimator.fit(few, labels[first])
    estimator.predict(few)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="fit and test the cells that are not in the results yet")
    names = [name for group in GROUPS.values() for name in group]
    runner.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    runner.add_argument("--datasets", nargs="+", choices=names, help="instead of all data sets of the groups")
    runner.add_argument("--models", nargs="+", default=list(COMPARED), choices=list(MODELS))
    runner.add_argument("--seeds", type=int, default=3)
    verbs.add_parser("report", help="write the tables and figures into the documentation")
    arguments = parser.parse_args()
    if arguments.verb == "report":
        report()
    else:
        datasets = arguments.datasets or [name for group in arguments.groups for name in GROUPS[group]]
        run(datasets, arguments.models, arguments.seeds)


if __name__ == "__main__":
    main()
