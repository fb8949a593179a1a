"""Symbolic representation for multivariate time series (Baydogan & Runger 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.ensemble import RandomForestClassifier

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import (
    BaselineClassifier,
    Labels,
    Probabilities,
    Series,
    check_grid,
    differences,
    lengths_of,
)
from seq2tens.experiments.baselines.leaves import bag, series_forest

# The maximum number of observations per tree of the first forest.
OBSERVATIONS = 25_000


class Setting(NamedTuple):
    """A setting for out-of-bag validation: the numbers of trees of the first forest and of their leaves."""

    n_trees: int
    n_leaves: int


@dataclass(kw_only=True, eq=False, repr=False)
class SMTSClassifier(BaselineClassifier):
    """A first forest turns observations into symbols; a second forest classifies series by their symbols.

    The first forest classifies single observations, labelled like their series, by their values, their
    differences from the previous step and their time. It need not be accurate: for each tree, the leaf of an
    observation is its symbol, and a series is represented by the bag of its symbols.

    Args:
        n_trees: candidates for the size of the first forest.
        n_leaves: candidates for the number of leaves of its trees.
        n_trees_series: size of the second forest.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    The setting is chosen by the out-of-bag score of the second forest; `setting_` is the chosen one.
    """

    n_trees: Sequence[int] = (50, 20, 100)
    n_leaves: Sequence[int] = (50, 25, 10, 100)
    n_trees_series: int = 200

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "dictionary"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        rows, lengths = observations(series), lengths_of(series)
        best = -1.0
        for n_leaves in self.n_leaves:
            trees = self._observation_forest(n_leaves, len(rows), seed).fit(rows, np.repeat(labels, lengths))
            bags = [bag(tree, rows, lengths) for tree in trees.estimators_]
            for n_trees in self.n_trees:
                forest = series_forest(self.n_trees_series, self.n_jobs, seed)
                forest.fit(np.concatenate(bags[:n_trees], axis=1), labels)
                if forest.oob_score_ > best:
                    best, self.setting_ = forest.oob_score_, Setting(n_trees, n_leaves)
                    self.trees_, self.forest_ = trees.estimators_[:n_trees], forest

    def _probabilities(self, series: Series) -> Probabilities:
        rows, lengths = observations(series), lengths_of(series)
        bags = [bag(tree, rows, lengths) for tree in self.trees_]
        return self.forest_.predict_proba(np.concatenate(bags, axis=1))

    def _check(self) -> None:
        check_grid("n_trees", self.n_trees)
        check_grid("n_leaves", self.n_leaves, low=1)
        check.positive_int("n_trees_series", self.n_trees_series)

    def _observation_forest(self, n_leaves: int, n_rows: int, seed: int) -> RandomForestClassifier:
        return RandomForestClassifier(
            n_estimators=max(self.n_trees),
            max_leaf_nodes=n_leaves,
            max_samples=min(n_rows, OBSERVATIONS),
            n_jobs=self.n_jobs,
            random_state=seed,
        )

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": (3,), "n_leaves": (5,), "n_trees_series": 50, "random_state": 0}


def observations(series: Series) -> Float[np.ndarray, "steps features"]:
    """The features of every step of every series: values, differences and time."""
    rows = [np.hstack([x, differences(x), np.arange(len(x))[:, None]]) for x in series]
    return np.concatenate(rows).astype(np.float32)
