"""Fit imputers and score what they fill."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.imputation.data import PROTOCOLS, Collection, Halves, Hide, Steps, by_step, hide
from benchmarks.imputation.rows import RESULTS, Cell, Row, append, read
from seq2tens.estimators import IMPUTERS, GPVAEImputer, Imputer
from seq2tens.estimators.imputers.pypots import PyPOTSImputer


@dataclass(kw_only=True, eq=False, repr=False)
class PyPOTSGPVAE(PyPOTSImputer):
    """The GP-VAE of PyPOTS with its default settings and the sizes of ours."""

    def _network(self, pypots: Any, **common: Any) -> Any:
        ours = GPVAEImputer()
        sizes = {"encoder_sizes": ours.encoder_sizes, "decoder_sizes": ours.decoder_sizes}
        return pypots.imputation.GPVAE(latent_size=ours.latent, **sizes, **common)


# A class, or its name in `IMPUTERS`, and non-default settings.
MODELS: dict[str, tuple[str | type[Imputer], dict[str, Any]]] = {
    "mean": ("mean", {}),
    "forward": ("forward", {}),
    "linear": ("linear", {}),
    "ls2t": ("ls2t", {}),
    "hi-vae": ("hi-vae", {}),
    "gp-vae": ("gp-vae", {"encoder": "conv"}),
    "gp-vae-bls2t": ("gp-vae", {"encoder": "bls2t"}),
    "brits (PyPOTS)": ("brits", {}),
    "saits (PyPOTS)": ("saits", {}),
    "timesnet (PyPOTS)": ("timesnet", {}),
    "imputeformer (PyPOTS)": ("imputeformer", {}),
    "helix (PyPOTS)": ("helix", {}),
    "csdi (PyPOTS)": ("csdi", {}),
    "gp-vae (PyPOTS)": (PyPOTSGPVAE, {}),
}
UNTRAINED = ("mean", "forward", "linear")


@dataclass(frozen=True)
class Plan:
    """The cells to run.

    `limit` (sequences of each half) and `epochs` are for trials; `time_limit`, in seconds, is for models that
    have one.
    """

    datasets: Iterable[str]
    models: Iterable[str]
    hidden: Iterable[Hide] | None = None
    seeds: int = 1
    limit: int = 0
    epochs: int = 0
    time_limit: int = 0

    def cells(self, dataset: str) -> list[Cell]:
        """The cells of a data set; the same entries are hidden for all models."""
        return [
            Cell(dataset, model, hidden, seed, self.limit, 0 if model in UNTRAINED else self.epochs)
            for hidden in self.hidden or PROTOCOLS[dataset].hidden
            for model in self.models
            for seed in range(self.seeds)
        ]


def run(plan: Plan, results: Path = RESULTS) -> None:
    """Run every cell that is not in the results yet, or that reached a shorter time limit."""
    finished = {
        row.cell for row in read(results) if not row.stopped_after or row.stopped_after >= plan.time_limit > 0
    }
    for dataset in plan.datasets:
        cells = [cell for cell in plan.cells(dataset) if cell not in finished]
        if cells:
            halves = Halves(*(half[: plan.limit or None] for half in PROTOCOLS[dataset].load()))
        for cell in cells:
            append(measure(halves, cell, plan.time_limit), results)


def measure(halves: Halves, cell: Cell, time_limit: int = 0) -> Row:
    """Hide entries, fit, fill and score."""
    blocks = [1] if cell.hide.pattern == "blocks" else []
    generator = np.random.default_rng([cell.seed, round(1000 * cell.hide.fraction), *blocks])
    train, _ = hide(halves.train, cell.hide, generator)
    incomplete, hidden = hide(halves.test, cell.hide, generator)
    imputer = _new_imputer(cell, time_limit)
    if cell.model not in UNTRAINED:  # warm-up: loading and compilation are not timed
        _new_imputer(cell, time_limit).set_params(epochs=1, progress="silent").fit(train[:4])
    begin, begin_cpu = time.perf_counter(), time.process_time()
    imputer.fit(train)
    if getattr(imputer, "interrupted_", False):  # an incomplete training is not a result
        raise KeyboardInterrupt
    middle, cpu_seconds = time.perf_counter(), time.process_time() - begin_cpu
    filled = imputer.transform(incomplete)
    end = time.perf_counter()
    score = Scores(by_step(halves.test), hidden, by_step(train))
    errors = score.errors(filled)
    inner, outer = (score.interval(*imputer.predict_interval(incomplete, level)) for level in (0.5, 0.9))
    return Row(
        cell.dataset,
        cell.model,
        cell.hide.fraction,
        cell.seed,
        cell.limit,
        cell.epochs,
        mae=float(np.abs(errors).mean()),
        mse=float(np.square(errors).mean()),
        fit_seconds=middle - begin,
        fill_seconds=end - middle,
        n_train=len(train),
        n_test=len(incomplete),
        n_scored=len(errors),
        threads=torch.get_num_threads(),
        pattern=cell.hide.pattern,
        coverage50=inner[0],
        coverage90=outer[0],
        width90=outer[1],
        cpu_seconds=cpu_seconds,
        stopped_after=time_limit if getattr(imputer, "timed_out_", False) else 0,
    )


def _new_imputer(cell: Cell, time_limit: int) -> Imputer:
    kind, options = MODELS[cell.model]
    cls = IMPUTERS[kind] if isinstance(kind, str) else kind
    if cell.model in UNTRAINED:
        return cls(**options)
    limits = {"epochs": cell.epochs} if cell.epochs else {}
    if time_limit and hasattr(cls, "time_limit"):
        limits["time_limit"] = time_limit
    return cls(**options, random_state=cell.seed, progress="lines", **limits)


class Scores:
    """Scores of hidden entries, in training standard deviations of the channel, without constant channels."""

    def __init__(self, truth: Steps, hidden: Steps, train: Steps) -> None:
        observed_twice = (~np.isnan(train)).sum(axis=0) > 1
        scale = np.zeros(train.shape[1])
        scale[observed_twice] = np.nanstd(train[:, observed_twice], axis=0, dtype=np.float64)
        self.scored = hidden & (scale > 0)
        self.scales = np.broadcast_to(scale, hidden.shape)[self.scored]
        self.truth = truth[self.scored]

    def errors(self, filled: Collection) -> np.ndarray:
        """Filled value minus truth."""
        return (self._values(filled) - self.truth) / self.scales

    def interval(self, low: Collection, high: Collection) -> tuple[float, float]:
        """The fraction of entries in their intervals, and the mean width of the intervals."""
        ends = self._values(low), self._values(high)
        inside = (ends[0] <= self.truth) & (self.truth <= ends[1])
        return float(inside.mean()), float(((ends[1] - ends[0]) / self.scales).mean())

    def _values(self, X: Collection) -> np.ndarray:
        return by_step(X)[self.scored].astype(np.float64)
