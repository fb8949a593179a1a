"""Bags of leaves: the leaves of trees as symbols, with their frequencies in each series."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.ensemble import RandomForestClassifier


def bag(
    tree: Any, rows: Float[np.ndarray, "rows features"], lengths: Int[np.ndarray, " series"]
) -> Float[np.ndarray, "series leaves"]:
    """The fraction of the rows of each series in each leaf of a tree; rows of a series are contiguous."""
    is_leaf = tree.tree_.children_left < 0
    n_leaves, numbers = is_leaf.sum(), np.cumsum(is_leaf) - 1
    owner = np.repeat(np.arange(len(lengths)), lengths)
    cells = owner * n_leaves + numbers[tree.apply(rows)]
    counts = np.bincount(cells, minlength=len(lengths) * n_leaves).reshape(len(lengths), n_leaves)
    return (counts / lengths[:, None]).astype(np.float32)


def series_forest(n_trees: int, n_jobs: int, seed: int) -> RandomForestClassifier:
    """A random forest that classifies series by their bags, with an out-of-bag score."""
    return RandomForestClassifier(n_trees, oob_score=True, n_jobs=n_jobs, random_state=seed)
