"""Errors of imputers, with their default settings, on entries that were hidden from them at random.

    python -m benchmarks.imputation run [--datasets NAME…] [--models NAME…] [--fractions X…] [--seeds N]
    python -m benchmarks.imputation report

A run appends one row per finished fit to `results/imputation_holdout.csv` and skips what is there; a report
writes the table of docs/accuracy.md. PhysioNet 2012 is read from SEQ2TENS_DATA, BasicMotions comes with aeon.
The imputers of PyPOTS need `pip install 'seq2tens[baselines]'`.

The same part of the observed entries is hidden in training and in test sequences, for all models the same
entries. A model is fitted to training sequences and fills test sequences; hidden entries of these are scored.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import torch

from benchmarks.pages import fill, markdown
from seq2tens.data import held_out, physionet2012
from seq2tens.estimators import IMPUTERS, GPVAEImputer, Imputer
from seq2tens.estimators.imputers.pypots import PyPOTSImputer

RESULTS, PAGE = Path("results/imputation_holdout.csv"), Path("docs/accuracy.md")
START, END = "<!-- imputation -->", "<!-- end of imputation -->"
FRACTIONS = (0.1, 0.3, 0.5)
STAYS, WINDOW = 1000, 25  # stays in each half of PhysioNet, and steps of a window of BasicMotions

Cube = np.ndarray  # (n, channels, time), NaN where nothing was observed


class Halves(NamedTuple):
    """Sequences to fit to, and sequences to fill."""

    train: Cube
    test: Cube


class Row(NamedTuple):
    """One finished fit. `limit` and `epochs` are 0 unless it was cut short."""

    dataset: str
    model: str
    fraction: float
    seed: int
    limit: int
    epochs: int
    mae: float
    mse: float
    fit_seconds: float
    fill_seconds: float
    n_train: int
    n_test: int
    n_scored: int
    threads: int


KEY = 6  # fields of a row that tell what was measured


@dataclass(kw_only=True, eq=False, repr=False)
class PyPOTSGPVAE(PyPOTSImputer):
    """The GP-VAE of PyPOTS with its own settings; sizes are those of ours."""

    def _network(self, pypots: Any, **common: Any) -> Any:
        ours = GPVAEImputer()
        sizes = {"encoder_sizes": ours.encoder_sizes, "decoder_sizes": ours.decoder_sizes}
        return pypots.imputation.GPVAE(latent_size=ours.latent, **sizes, **common)


def _physionet() -> Halves:
    """Stays of set a on the hourly grid."""
    grid = physionet2012.grid(physionet2012.load_set("a").stays)
    order = np.random.default_rng(0).permutation(len(grid))[: 2 * STAYS]
    cube = grid.with_nan[order].transpose(0, 2, 1)
    return Halves(cube[:STAYS], cube[STAYS:])


def _basic_motions() -> Halves:
    """Recordings cut into windows that do not overlap."""
    from aeon.datasets import load_basic_motions

    def windows(cube: Cube) -> Cube:
        n, channels, steps = cube.shape
        cut = cube.reshape(n, channels, steps // WINDOW, WINDOW)
        return cut.transpose(0, 2, 1, 3).reshape(-1, channels, WINDOW)

    return Halves(*(windows(load_basic_motions(split=split)[0]) for split in ("train", "test")))


DATASETS: dict[str, Callable[[], Halves]] = {"physionet": _physionet, "basicmotions": _basic_motions}
MODELS: dict[str, tuple[type[Imputer], dict[str, Any]]] = {
    "mean": (IMPUTERS["mean"], {}),
    "forward": (IMPUTERS["forward"], {}),
    "linear": (IMPUTERS["linear"], {}),
    "hi-vae": (IMPUTERS["hi-vae"], {}),
    "gp-vae": (IMPUTERS["gp-vae"], {"encoder": "conv"}),
    "gp-vae-bls2t": (IMPUTERS["gp-vae"], {"encoder": "bls2t"}),
    "brits (PyPOTS)": (IMPUTERS["brits"], {}),
    "saits (PyPOTS)": (IMPUTERS["saits"], {}),
    "gp-vae (PyPOTS)": (PyPOTSGPVAE, {}),
}
UNTRAINED = ("mean", "forward", "linear")


def run(
    datasets: Iterable[str],
    models: Iterable[str],
    fractions: Iterable[float],
    seeds: int,
    *,
    limit: int = 0,
    epochs: int = 0,
    results: Path = RESULTS,
) -> None:
    """Every cell that is not in the results yet."""
    finished = {row[:KEY] for row in read(results)}
    models, fractions = list(models), list(fractions)
    for dataset in datasets:
        halves = Halves(*(half[: limit or None] for half in DATASETS[dataset]()))
        for fraction in fractions:
            for model in models:
                for seed in range(seeds):
                    cell = (dataset, model, fraction, seed, limit, 0 if model in UNTRAINED else epochs)
                    if cell not in finished:
                        append(Row(*cell, *measure(halves, *cell)), results)


def measure(
    halves: Halves, dataset: str, model: str, fraction: float, seed: int, limit: int, epochs: int
) -> tuple[Any, ...]:
    """What a row has beside its key."""
    generator = np.random.default_rng([seed, round(1000 * fraction)])
    train, _ = held_out(halves.train, fraction, generator)
    given, hidden = held_out(halves.test, fraction, generator)
    kind, settings = MODELS[model]
    if model not in UNTRAINED:
        settings = {**settings, "random_state": seed, **({"epochs": epochs} if epochs else {})}
        kind(**{**settings, "epochs": 1}).fit(train[:4])  # what is loaded or compiled once is not timed
    imputer = kind(**settings)
    begin = time.perf_counter()
    imputer.fit(train)
    if getattr(imputer, "interrupted_", False):  # what was trained in part is no result
        raise KeyboardInterrupt
    middle = time.perf_counter()
    filled = imputer.transform(given)
    end = time.perf_counter()
    errors = _errors(filled, halves.test, hidden, train)
    return (
        float(np.abs(errors).mean()),
        float(np.square(errors).mean()),
        middle - begin,
        end - middle,
        len(train),
        len(given),
        len(errors),
        torch.get_num_threads(),
    )


def _errors(filled: Cube, truth: Cube, hidden: np.ndarray, train: Cube) -> np.ndarray:
    """Of hidden entries, in standard deviations of the channel in training; channels without one are left
    out."""
    seen = (~np.isnan(train)).sum(axis=(0, 2), keepdims=True)
    scale = np.zeros_like(seen, dtype=np.float64)
    several = seen.ravel() > 1
    scale[:, several] = np.nanstd(train[:, several], axis=(0, 2), keepdims=True, dtype=np.float64)
    scored = hidden & (scale > 0)
    scales = np.broadcast_to(scale, hidden.shape)[scored]
    return (filled[scored].astype(np.float64) - truth[scored]) / scales


def append(row: Row, results: Path) -> None:
    new = not results.exists()
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        if new:
            table.writerow(Row._fields)
        table.writerow([f"{cell:.5g}" if isinstance(cell, float) else cell for cell in row])
    print(*row[:KEY], f"MAE {row.mae:.3f}  MSE {row.mse:.3f}  {row.fit_seconds:.1f} s", flush=True)


def read(results: Path) -> list[Row]:
    """All finished fits."""
    if not results.exists():
        return []
    kinds = get_type_hints(Row)
    with results.open(newline="") as file:
        rows = csv.DictReader(file)
        return [Row(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in rows]


def tables(rows: list[Row]) -> str:
    """MAE and MSE by model and by what was hidden, the best of each column in bold, and how often who is."""
    whole = [row for row in rows if not row.limit and not row.epochs]
    if not whole:
        return "Nothing has been measured yet.\n"
    return "\n".join([_table(whole, "mae"), _table(whole, "mse"), _seconds(whole)])


def _columns(rows: list[Row]) -> list[tuple[str, float]]:
    return sorted({(row.dataset, row.fraction) for row in rows}, key=lambda c: (c[0] != "physionet", c))


def _models(rows: list[Row]) -> list[str]:
    return [name for name in MODELS if any(row.model == name for row in rows)]


def _cell(rows: list[Row], model: str, column: tuple[str, float], score: str) -> list[float]:
    return [
        getattr(row, score) for row in rows if (row.model, (row.dataset, row.fraction)) == (model, column)
    ]


def _table(rows: list[Row], score: str) -> str:
    columns, models = _columns(rows), _models(rows)
    means = {
        (model, column): statistics.fmean(values)
        for model in models
        for column in columns
        if (values := _cell(rows, model, column, score))
    }
    best = {
        c: min((mean, model) for (model, column), mean in means.items() if column == c)[1] for c in columns
    }
    lines = [
        [model, *(_score(_cell(rows, model, c, score), best[c] == model) for c in columns)]
        for model in models
    ]
    wins = Counter(best.values()).most_common()
    told = ", ".join(f"{model} in {count}" for model, count in wins)
    header = ["model", *(f"{dataset}, {fraction:.0%} hidden" for dataset, fraction in columns)]
    return f"#### {score.upper()}\n\n{markdown(header, lines)}\n\nLowest of {len(columns)} columns: {told}.\n"


def _score(values: list[float], best: bool) -> str:
    if not values:
        return ""
    text = f"{statistics.fmean(values):.3f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.3f} ({len(values)})"
    return f"**{text}**" if best else text


def _seconds(rows: list[Row]) -> str:
    datasets, models = list(dict.fromkeys(c[0] for c in _columns(rows))), _models(rows)
    lines = []
    for model in models:
        cells = [
            [row.fit_seconds for row in rows if (row.model, row.dataset) == (model, d)] for d in datasets
        ]
        lines.append([model, *(f"{statistics.fmean(cell):.1f}" if cell else "" for cell in cells)])
    return f"#### Seconds of a fit\n\n{markdown(['model', *datasets], lines)}\n"


def report(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Put the tables between the marks of a page."""
    fill(page, START, END, tables(read(results)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imputation", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="fit and score what has not been yet")
    runner.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    runner.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    runner.add_argument("--fractions", nargs="+", type=float, default=FRACTIONS)
    runner.add_argument("--seeds", type=int, default=1)
    runner.add_argument("--limit", type=int, default=0, help="sequences of each half, for a trial")
    runner.add_argument("--epochs", type=int, default=0, help="epochs of all models, for a trial")
    runner.add_argument("--results", type=Path, default=RESULTS)
    verbs.add_parser("report", help="write the tables into the documentation")
    given = parser.parse_args()
    if given.verb == "report":
        report()
    else:
        cells = (given.datasets, given.models, given.fractions, given.seeds)
        run(*cells, limit=given.limit, epochs=given.epochs, results=given.results)


if __name__ == "__main__":
    main()
