"""Impute a test part and compute its scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from seq2tens.data import forward_imputation, mean_imputation
from seq2tens.estimators import Imputer
from seq2tens.models.gpvae import GPVAE, IncompleteBatch

# The number of draws of the latent path that are averaged for a prediction.
DRAWS = 20
# The number of levels, or of bins of predicted probabilities, of a calibration curve.
LEVELS = 20
COVERAGE = 0.9
# Options of logistic regressions: for two classes, liblinear with a tolerance as published. For more classes,
# with lbfgs, a larger tolerance suffices for five digits of the score.
TWO_CLASSES = {"solver": "liblinear", "tol": 1e-10, "max_iter": 10_000}
MORE_CLASSES = {"tol": 1e-5, "max_iter": 3000}

Entries = Float[Tensor, "rows time channels"]


class Filled(NamedTuple):
    """The predictions of a model for all entries.

    `expected` are values at the mean of the latent path. `nll` is the negative log-density of the truth at
    one draw of it. `place` is the predictive distribution function at the truth; for binary values, it is the
    predicted probability of a 1. Rules that predict only values have neither.
    """

    expected: Entries
    nll: Entries | None = None
    place: Entries | None = None


Fill = Callable[[IncompleteBatch], Filled]


def by_data_mean(means: Float[np.ndarray, " channels"]) -> Fill:
    """Fill with the mean of the channel over the training part."""
    row = torch.from_numpy(means)
    return lambda batch: Filled(row.expand_as(batch.values))


def by_mean(batch: IncompleteBatch) -> Filled:
    """Fill with the mean of the channel over the sequence; 0 if it was never observed."""
    return Filled(torch.from_numpy(mean_imputation(with_gaps(batch), over="sequence")))


def by_forward(batch: IncompleteBatch) -> Filled:
    """Fill with the previous value; 0 before the first one."""
    return Filled(torch.tensor(forward_imputation(with_gaps(batch))))


def by_imputer(imputer: Imputer) -> Fill:
    """Fill with a fitted estimator, whose axes are (channels, time)."""

    def fill(batch: IncompleteBatch) -> Filled:
        filled = imputer.transform(with_gaps(batch).transpose(0, 2, 1)).transpose(0, 2, 1)
        return Filled(torch.tensor(filled, dtype=batch.values.dtype))

    return fill


def with_gaps(batch: IncompleteBatch) -> Float[np.ndarray, "rows time channels"]:
    """The values, with NaN for missing entries."""
    return torch.where(batch.observed, batch.values, torch.nan).numpy()


def by_network(network: GPVAE, seed: int) -> Fill:
    """Fill with a trained network; the seed determines its draws."""
    generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def fill(batch: IncompleteBatch) -> Filled:
        decoder = network.decoder
        posterior = network.encode(batch.values, batch.observed, batch.lengths)
        expected = decoder.mean(decoder(posterior.mean))
        if batch.truth is None or batch.hidden is None or not bool(batch.hidden.any()):
            return Filled(expected)
        nll, place = None, torch.zeros_like(expected)
        for _ in range(DRAWS):
            noise = torch.randn(posterior.mean.shape, generator=generator)
            parameters = decoder(posterior.sample(noise))
            nll = -decoder.log_density(parameters, batch.truth) if nll is None else nll
            place += _place(network, parameters, batch.truth) / DRAWS
        return Filled(expected, nll, place)

    return fill


def _place(network: GPVAE, parameters: Entries, truth: Entries) -> Entries:
    decoder = network.decoder
    if decoder.likelihood == "bernoulli":
        return decoder.mean(parameters)
    learned = decoder.log_variance
    deviation = math.sqrt(float(decoder.variance)) if learned is None else torch.exp(0.5 * learned)
    return torch.special.ndtr((truth - parameters) / deviation)


class Tally:
    """Sums over hidden entries, batch by batch, and, if requested, the imputed sequences.

    Args:
        binary: whether values are 0 and 1; imputed ones are then rounded and kept as bytes.
        keep: whether to keep imputed sequences.
    """

    def __init__(self, *, binary: bool, keep: bool) -> None:
        self.binary, self.keep = binary, keep
        self.n_hidden, self.covered = 0, 0
        self.sums = dict.fromkeys(("nll", "squared", "rounded"), 0.0)
        self.has_density = False
        self.predicted, self.frequencies = np.zeros(LEVELS), np.zeros(LEVELS)
        self.counts = np.zeros(LEVELS, dtype=np.int64)
        self.imputed: list[np.ndarray] = []

    def add(self, batch: IncompleteBatch, filled: Filled) -> None:
        """Add a batch."""
        if self.keep:
            self.imputed.append(self._flat(complete(batch, filled)))
        if batch.truth is None or batch.hidden is None:
            return
        truth, expected = batch.truth[batch.hidden], filled.expected[batch.hidden]
        self.n_hidden += len(truth)
        self._sum("squared", (expected - truth).square())
        self._sum("rounded", (expected.round() - truth).square())
        if filled.nll is None or filled.place is None:
            return
        self.has_density = True
        self._sum("nll", filled.nll[batch.hidden])
        count = self._count_probabilities if self.binary else self._count_places
        count(filled.place[batch.hidden].numpy(), truth.numpy())

    def scores(self) -> dict[str, float | None]:
        """The columns of a row; None for scores that do not exist."""
        none: dict[str, float | None] = dict.fromkeys(("nll", "mse", "mse_probability", "coverage"))
        if not self.n_hidden:
            return none
        means = {name: total / self.n_hidden for name, total in self.sums.items()}
        scores = {**none, "mse": means["rounded" if self.binary else "squared"]}
        if self.has_density:
            scores |= {"nll": means["nll"], "coverage": self.covered / self.n_hidden}
            scores["mse_probability"] = means["squared"] if self.binary else None
        return {name: None if value is None else round(value, 6) for name, value in scores.items()}

    def calibration(self) -> list[tuple[float, float, int]]:
        """The calibration curve: triples of predicted and observed frequency and number of entries.

        For binary values, these are probabilities and frequencies of a 1, in bins of the probability;
        otherwise levels of central intervals and the fraction of entries in them.
        """
        if not self.has_density:
            return []
        if self.binary:
            occupied = self.counts > 0
            counts = self.counts[occupied]
            triples = zip(
                self.predicted[occupied] / counts, self.frequencies[occupied] / counts, counts, strict=True
            )
        else:
            levels = np.arange(1, LEVELS + 1) / LEVELS
            inside = self.counts.cumsum()
            triples = zip(levels, inside / self.n_hidden, np.full(LEVELS, self.n_hidden), strict=True)
        return [(round(float(a), 6), round(float(b), 6), int(n)) for a, b, n in triples]

    def sequences(self) -> Float[np.ndarray, "n features"]:
        """The imputed sequences, flattened for a classifier."""
        return np.concatenate(self.imputed)

    def _sum(self, name: str, entries: Tensor) -> None:
        self.sums[name] += float(entries.double().sum())

    def _count_probabilities(self, chance: np.ndarray, truth: np.ndarray) -> None:
        level = np.minimum((chance * LEVELS).astype(np.int64), LEVELS - 1)
        self.counts += np.bincount(level, minlength=LEVELS)
        self.predicted += np.bincount(level, chance, minlength=LEVELS)
        self.frequencies += np.bincount(level, truth, minlength=LEVELS)
        # Whether the truth is in the smallest set of values with enough probability.
        confident = np.where(truth > 0.5, chance, 1 - chance) > 1 - COVERAGE
        self.covered += int(confident.sum())

    def _count_places(self, place: np.ndarray, truth: np.ndarray) -> None:
        needed = np.abs(2 * place - 1)  # the level of the smallest central interval that contains the truth
        level = np.clip(np.ceil(needed * LEVELS).astype(np.int64) - 1, 0, LEVELS - 1)
        self.counts += np.bincount(level, minlength=LEVELS)
        self.covered += int((needed <= COVERAGE).sum())

    def _flat(self, complete: Entries) -> np.ndarray:
        flat = complete.flatten(1)
        return flat.round().to(torch.uint8).numpy() if self.binary else flat.numpy()


def complete(batch: IncompleteBatch, filled: Filled) -> Entries:
    """Observed values, and expected values for missing entries."""
    return torch.where(batch.observed, batch.values, filled.expected)


def auroc(features: Float[np.ndarray, "n features"], labels: Shaped[np.ndarray, " n"]) -> float:
    """The area under the ROC curve of a logistic regression on imputed sequences, averaged one-versus-rest.

    The classifier is fitted on the first half of the rows and scored on the second.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    half = len(labels) // 2
    options = TWO_CLASSES if len(np.unique(labels)) == 2 else MORE_CLASSES
    classifier = LogisticRegression(**options)
    classifier.fit(features[:half].astype(np.float32, copy=False), labels[:half])
    probabilities = classifier.predict_proba(features[half:].astype(np.float32, copy=False))
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels[half:], probabilities[:, 1]))
    return float(roc_auc_score(labels[half:], probabilities, multi_class="ovr", labels=classifier.classes_))


def aurocs(
    features: Float[np.ndarray, "n features"], labels: Shaped[np.ndarray, " n"], orders: int
) -> list[float]:
    """`auroc` in several random orders of the rows, which depend only on the number of rows.

    For 0 orders, it is that in the given order.
    """
    if orders == 0:
        return [auroc(features, labels)]
    permutations = [np.random.default_rng(order).permutation(len(labels)) for order in range(orders)]
    return [auroc(features[rows], labels[rows]) for rows in permutations]
