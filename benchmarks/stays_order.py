"""The published AUROCs of Physionet against ours, in many random orders of the stays.

    SEQ2TENS_DATA=… python -m benchmarks.stays_order [--models A,B,…] [--orders N] [--seed N] [--backwards]

Published figures are for one order of the stays, which is lost. This trains each model once, as the
imputation experiment does, and scores it in N orders. It prints mean and standard deviation over orders, how
far the published figure is from the mean, and the probability that the figures of all models in one more
order are further away than the published ones (Hotelling's test). GP-VAEs take some minutes each. With
--backwards, stays are read backwards in time, which makes the factor B of a GP-VAE the published one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import f as f_distribution

from benchmarks.many_orders import areas
from benchmarks.pages import markdown
from seq2tens.data import Incomplete
from seq2tens.experiments.imputation.data import blocks, load
from seq2tens.experiments.imputation.models import MODELS, SETTINGS, network
from seq2tens.experiments.imputation.published import SCORES
from seq2tens.experiments.imputation.scores import Fill, Tally, by_forward, by_mean, by_network
from seq2tens.models.gpvae import IncompleteSource, NegativeElbo
from seq2tens.training import fit, seeded_initialization

RULES: dict[str, Fill] = {"mean": by_mean, "forward": by_forward}
NAMES = ("mean", "forward", "vae", "hi-vae", "gp-vae", "gp-vae-bls2t")
# Orders per batch: their scores are kept in memory together.
TOGETHER = 40

Areas = Float[np.ndarray, " orders"]


def reversed_in_time(stays: Incomplete) -> Incomplete:
    """The stays, read backwards."""
    return replace(stays, truth=stays.truth[:, ::-1].copy(), observed=stays.observed[:, ::-1].copy())


def trained(model: str, seed: int, stays: Incomplete) -> Fill:
    """A rule, or a network trained as in the imputation experiment."""
    if model in RULES:
        return RULES[model]
    with seeded_initialization(seed):
        net = network("physionet", model)
    settings = SETTINGS["physionet"]
    recipe = settings.recipe(settings.epochs)
    fit(net, NegativeElbo(), IncompleteSource(stays), recipe=recipe, seed=seed, progress="silent")
    return by_network(net, seed)


def imputed(fill: Fill, stays: Incomplete) -> Float[np.ndarray, "rows features"]:
    """All stays, flattened, with their gaps filled."""
    source, tally = IncompleteSource(stays), Tally(binary=False, keep=True)
    for rows in blocks(len(stays)):
        batch = source.batch(torch.from_numpy(rows))
        tally.add(batch, fill(batch))
    return tally.sequences()


def in_orders(model: str, seed: int, stays: Incomplete, n_orders: int) -> Areas:
    """The AUROC of a model in each order; the first ones are those of the experiment."""
    filled, labels = imputed(trained(model, seed, stays), stays), np.asarray(stays.labels)
    orders = np.array([np.random.default_rng(i).permutation(len(filled)) for i in range(n_orders)])
    chunks = np.array_split(orders, -(-n_orders // TOGETHER))
    return np.concatenate([areas(filled, labels, chunk) for chunk in chunks])


def probability(scores: Float[np.ndarray, "models orders"], published: Float[np.ndarray, " models"]) -> float:
    """The probability that figures in one more order are further from the means than the published ones."""
    models, n = scores.shape
    away = published - scores.mean(1)
    square = away @ np.linalg.solve(np.atleast_2d(np.cov(scores)), away) / (1 + 1 / n)
    return float(f_distribution.sf(square * (n - models) / (models * (n - 1)), models, n - models))


def report(scores: Mapping[str, Areas]) -> str:
    """The table of all models, and the probability below it."""
    published = {model: SCORES[MODELS[model].label]["physionet"]["auroc"].mean for model in scores}
    lines = []
    for model, values in scores.items():
        mean, spread = values.mean(), values.std(ddof=1)
        away = published[model] - mean
        numbers = [f"{mean:.4f} ± {spread:.4f}", f"{published[model]:.3f}", f"{away:+.4f}"]
        lines.append([MODELS[model].label, *numbers, f"{away / spread:+.1f}", f"{values.max():.3f}"])
    header = ["model", "ours", "published", "difference", "in deviations", "largest in an order"]
    chance = probability(np.array(list(scores.values())), np.array(list(published.values())))
    return f"{markdown(header, lines)}\n\nAll models at once: p = {chance:.4f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stays_order", description=__doc__)
    parser.add_argument("--models", default=",".join(NAMES))
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backwards", action="store_true")
    options = parser.parse_args(arguments)
    stays = load("physionet", None).train
    assert isinstance(stays, Incomplete)
    stays = reversed_in_time(stays) if options.backwards else stays
    names = options.models.split(",")
    print(report({name: in_orders(name, options.seed, stays, options.orders) for name in names}))


if __name__ == "__main__":
    main()
