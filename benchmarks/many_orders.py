"""Areas under the ROC curve of a logistic regression, in many orders of the rows at once.

In each order the classifier is fitted on the first half of the rows and scored on the second, as by
`seq2tens.experiments.imputation.scores.auroc`. The objective is that of liblinear with C = 1, which counts
the bias among the weights. Newton's method solves for all orders together: they share the table, so that a
step is a product of matrices, and one preconditioner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from scipy.stats import rankdata
from torch import Tensor

NEWTON_STEPS, INNER_STEPS, HALVINGS = 40, 60, 12
# Relative to the first gradient, and to that of the step for conjugate gradients.
TOLERANCE, INNER_TOLERANCE = 1e-5, 0.05
# About p(1 - p) for deaths in hospital; it only has to make a good preconditioner.
CURVATURE = 0.08

Weights = Float[Tensor, "features orders"]
Scores = Float[Tensor, "rows orders"]


class Problem(NamedTuple):
    """The tables of all orders: features with a bias, labels of ±1, which rows are fitted, and P ≈ H⁻¹."""

    features: Float[Tensor, "rows features"]
    signs: Float[Tensor, "rows 1"]
    fitted: Scores
    inverse: Float[Tensor, "features features"]

    def loss(self, weights: Weights, scores: Scores) -> Float[Tensor, " orders"]:
        """The objective, half the squared norm of the weights plus the log-losses of the fitted rows."""
        losses = torch.nn.functional.softplus(-self.signs * scores)
        return (self.fitted * losses).sum(0) + weights.square().sum(0) / 2


def areas(
    features: Float[np.ndarray, "rows features"],
    labels: Shaped[np.ndarray, " rows"],
    orders: Int[np.ndarray, "orders rows"],
) -> Float[np.ndarray, " orders"]:
    """The area in each order, for labels of 0 and 1."""
    scores = _solve(_problem(features, labels, orders))
    half = len(labels) // 2
    return np.array([_area(scores[rows[half:], i], labels[rows[half:]]) for i, rows in enumerate(orders)])


def _problem(features: np.ndarray, labels: np.ndarray, orders: np.ndarray) -> Problem:
    n = len(labels)
    table = torch.from_numpy(np.column_stack([features, np.ones(n)])).float()
    fitted = torch.zeros(n, len(orders))
    fitted.scatter_(0, torch.from_numpy(orders[:, : n // 2].T.copy()), 1.0)
    hessian = CURVATURE / 2 * (table.mT @ table).double() + torch.eye(table.shape[1], dtype=torch.float64)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(hessian)).float()
    signs = torch.from_numpy(np.where(labels == 1, 1.0, -1.0)).float()[:, None]
    return Problem(table, signs, fitted, inverse)


def _solve(problem: Problem) -> Float[np.ndarray, "rows orders"]:
    """Minimise the objective of every order; return the scores of all rows."""
    table, signs, fitted, _ = problem
    weights, scores = torch.zeros(table.shape[1], fitted.shape[1]), torch.zeros_like(fitted)
    first: Tensor | None = None
    for _ in range(NEWTON_STEPS):
        wrong = torch.sigmoid(-signs * scores) * fitted
        gradient = weights - table.mT @ (signs * wrong)
        size = gradient.norm(dim=0)
        first = size if first is None else first
        if bool((size <= TOLERANCE * first).all()):
            return (table @ weights).numpy()
        step = _newton_step(problem, gradient, wrong * torch.sigmoid(signs * scores))
        length = _step_length(problem, (weights, scores), (step, table @ step), (gradient * step).sum(0))
        weights = weights + length * step
        scores = table @ weights
    raise RuntimeError("Newton's method did not converge")


def _newton_step(problem: Problem, gradient: Weights, curvature: Scores) -> Weights:
    """Solve H x = -gradient by preconditioned conjugate gradients."""
    table, inverse = problem.features, problem.inverse
    x, residual = torch.zeros_like(gradient), -gradient
    direction = inverse @ residual
    energy = (residual * direction).sum(0)
    for _ in range(INNER_STEPS):
        image = direction + table.mT @ (curvature * (table @ direction))
        length = energy / (direction * image).sum(0).clamp_min(1e-30)
        x, residual = x + length * direction, residual - length * image
        if bool((residual.norm(dim=0) <= INNER_TOLERANCE * gradient.norm(dim=0)).all()):
            break
        scaled = inverse @ residual
        before, energy = energy, (residual * scaled).sum(0)
        direction = scaled + energy / before.clamp_min(1e-30) * direction
    return x


def _step_length(
    problem: Problem,
    at: tuple[Weights, Scores],
    step: tuple[Weights, Scores],
    slope: Float[Tensor, " orders"],
) -> Float[Tensor, " orders"]:
    """Halve the steps of orders whose objective would not fall, up to rounding errors."""
    start = problem.loss(*at)
    length = torch.ones_like(slope)
    for _ in range(HALVINGS):
        moved = (old + length * change for old, change in zip(at, step, strict=True))
        above = problem.loss(*moved) > start + 1e-4 * length * slope + 1e-6 * start
        if not bool(above.any()):
            break
        length = torch.where(above, length / 2, length)
    return length


def _area(scores: np.ndarray, labels: np.ndarray) -> float:
    positive = labels == 1
    n, m = int(positive.sum()), int((~positive).sum())
    return float(rankdata(scores)[positive].sum() - n * (n + 1) / 2) / (n * m)
