"""Regression with default settings on the data sets behind SEQ2TENS_DATA, and the coverage of intervals.

python -m benchmarks.regression [--seeds N]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from aeon.regression.convolution_based import MultiRocketRegressor
from aeon.transformations.collection.interval_based import QUANTTransformer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.pages import markdown
from seq2tens.data import Labelled, read_ts, to_aeon
from seq2tens.estimators import RandomLS2TRegressor

DATA = Path(os.environ.get("SEQ2TENS_DATA", "data"))
COVERAGE = 0.9
PENALTIES = np.logspace(-4, 4, 20)


def _multirocket(seed: int) -> Any:
    return MultiRocketRegressor(n_jobs=-1, random_state=seed)


def _quant(seed: int) -> Any:
    return make_pipeline(QUANTTransformer(), StandardScaler(), RidgeCV(PENALTIES))


PEERS: dict[str, Callable[[int], Any]] = {"MultiRocket": _multirocket, "Ridge on QUANT": _quant}


class Problem(NamedTuple):
    """A data set with its default split."""

    name: str
    train: Labelled
    test: Labelled

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Targets of both parts."""
        return np.asarray(self.train.labels, dtype=float), np.asarray(self.test.labels, dtype=float)


class Ours(NamedTuple):
    """R² of `RandomLS2TRegressor`, whether each interval contains the truth, and the mean width."""

    r2: float
    inside: np.ndarray
    width: float


def problems() -> Iterator[Problem]:
    """Yield all data sets."""
    for path in sorted((DATA / "regression").glob("*_TRAIN.ts")):
        name = path.stem.removesuffix("_TRAIN")
        yield Problem(name, read_ts(path), read_ts(path.with_name(f"{name}_TEST.ts")))


def ours(problem: Problem, seed: int) -> Ours:
    """Fit our regressor and predict the test part."""
    values, truth = problem.values
    model = RandomLS2TRegressor(n_jobs=-1, random_state=seed).fit(problem.train.sequences, values)
    low, high = model.predict_interval(problem.test.sequences, COVERAGE).T
    inside = (low <= truth) & (truth <= high)
    return Ours(model.score(problem.test.sequences, truth), inside, float((high - low).mean()))


def peer(problem: Problem, make: Callable[[int], Any], seed: int) -> float:
    """Return the R² of another regressor on the test part."""
    values, truth = problem.values
    series, unseen = (np.stack(to_aeon(part.sequences)) for part in (problem.train, problem.test))
    return float(r2_score(truth, make(seed).fit(series, values).predict(unseen)))


def line(problem: Problem, runs: list[Ours], peers: list[float]) -> list[str]:
    """A row of the table: means over seeds."""
    _, truth = problem.values
    covered, width = np.mean([run.inside.mean() for run in runs]), np.mean([run.width for run in runs])
    scores = [float(np.mean([run.r2 for run in runs])), *peers]
    sizes = [str(len(problem.train)), str(len(problem.test))]
    numbers = [f"{score:.3f}" for score in scores] + [f"{covered:.3f}", f"{width:.4g}", f"{truth.std():.4g}"]
    return [problem.name, *sizes, *numbers]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    lines, inside = [], []
    for problem in problems():
        runs = [ours(problem, seed) for seed in seeds]
        peers = [float(np.mean([peer(problem, make, s) for s in seeds])) for make in PEERS.values()]
        lines.append(line(problem, runs, peers))
        inside += [run.inside for run in runs]
    r2 = [f"R², {name}" for name in ("RandomLS2T", *PEERS)]
    header = ["data set", "training series", "test series", *r2, "covered", "width", "spread of values"]
    print(f"Means over {len(seeds)} seeds.\n\n{markdown(header, lines)}")
    together = np.concatenate(inside)
    print(f"\nIntervals of {COVERAGE:.0%} contain {together.mean():.1%} of {len(together)} predicted values.")


if __name__ == "__main__":
    main()
