"""Explanation of a prediction of a linear model on random features."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens._storage import write_atomically
from seq2tens.data import Sequences

if TYPE_CHECKING:  # importing them takes seconds
    from matplotlib.figure import Figure

    from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor
    from seq2tens.estimators.random import Explanation as Feature

RAISES, LOWERS = "#b2182b", "#2166ac"


class FeatureContribution(NamedTuple):
    """The contribution of one feature, and a description of the feature.

    The description says how a path is pooled, which channels at which lags the feature looks at, and the
    times of the steps that make it large; there are none if the sequence is too short.
    """

    contribution: float
    pool: str
    level: int
    channels: tuple[str, ...]
    lags: tuple[int, ...]
    times: tuple[float, ...]

    def __str__(self) -> str:
        filters = " then ".join(
            f"{c} at lag {lag:+d}" for c, lag in zip(self.channels, self.lags, strict=True)
        )
        times = f" (at {', '.join(f'{time:g}' for time in self.times)})" if self.times else ""
        return f"{self.pool} of {filters}{times}"


@dataclass(frozen=True, eq=False, repr=False)
class FeatureExplanation:
    """The difference between the output for a sequence and that for mean features, as a sum over features.

        output - baseline_output = Σ contributions of features + rest

    Attributes:
        target: the class whose score, minus the mean of the other scores, is the output; for a regressor, the
            name of the target.
        output: the output for the sequence.
        baseline_output: the output if all features have their mean in the training data.
        features: the features with the largest contributions, positive or negative, the largest first.
        rest: the sum of all other contributions.
    """

    target: str
    output: float
    baseline_output: float
    features: tuple[FeatureContribution, ...]
    rest: float

    def to_csv(self, path: str | Path) -> None:
        """Write the features and the rest with all digits, atomically."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(FeatureContribution._fields)
        for row in self.features:
            joined_lists = (" ".join(map(str, values)) for values in (row.channels, row.lags, row.times))
            writer.writerow([row.contribution, row.pool, row.level, *joined_lists])
        writer.writerow([self.rest, "rest", "", "", "", ""])
        write_atomically(Path(path), text.getvalue().encode())

    def figure(self) -> Figure:
        """Draw a bar for each feature and one for the rest."""
        from matplotlib.figure import Figure

        names = [*map(str, self.features), "all others"]
        values = np.array([*(row.contribution for row in self.features), self.rest])
        figure = Figure(figsize=(10, 1.2 + 0.28 * len(names)), layout="constrained")
        ax = figure.subplots()
        ax.barh(range(len(names)), values, color=np.where(values > 0, RAISES, LOWERS))
        ax.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
        ax.invert_yaxis()
        ax.axvline(0, color="#333333", linewidth=0.8)
        ax.set_xlabel(f"contribution to {self.target}", parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        return figure

    def plot(self, path: str | Path) -> None:
        """Write `figure` as PNG, SVG or PDF, according to the suffix."""
        from seq2tens import plots

        plots.picture_suffix(Path(path))
        plots.save(self.figure(), path)


def explain_features(
    model: RandomLS2TClassifier | RandomLS2TRegressor,
    x: Any,
    *,
    target: Any = None,
    names: Sequence[str] | None = None,
    top: int = 20,
) -> FeatureExplanation:
    """Attribute a prediction of `RandomLS2TClassifier` or `RandomLS2TRegressor` to random features.

    The model is linear in its features, so its output is a sum of their contributions.

    Args:
        model: the fitted classifier or regressor.
        x: one sequence, in any form that `predict` takes.
        target: the class to explain, by default the second of two, otherwise the predicted one; for a
            regressor with several targets the index of one, by default 0.
        names: names of the channels.
        top: how many features are listed individually.
    """
    from seq2tens.estimators import as_sequences
    from seq2tens.estimators.random import describe_features

    check.positive_int("top", top)
    table = model.standardized_features(x)
    check.require(len(table) == 1, f"`x` must hold one sequence, got {len(table)}")
    row, sequence, ridge = table[0].double(), as_sequences(x, model.encoding_), model.ridge_
    coefficients, intercept = ridge.coefficients.double(), ridge.intercept.double()
    contrast, name, level = _contrast(model, (row @ coefficients + intercept).numpy(), target)
    direction = coefficients @ coefficients.new_tensor(contrast)
    parts = row * direction
    features = describe_features(model.features_, parts[:, None], sequence, min(top, len(parts)))
    contributions = tuple(_contribution(feature, sequence, names) for feature in features)
    baseline = level + float(intercept @ intercept.new_tensor(contrast))
    total = float(parts.sum())
    return FeatureExplanation(
        name,
        baseline + total,
        baseline,
        contributions,
        total - sum(feature.contribution for feature in contributions),
    )


def _contrast(
    model: Any, scores: Float[np.ndarray, " targets"], target: Any
) -> tuple[list[float], str, float]:
    """Return the weights of the outputs to explain, the name of their combination, and its offset."""
    n = len(scores)
    if hasattr(model, "classes_"):
        classes = model.classes_.tolist()
        check.require(
            target is None or target in classes,
            f"`target` must be one of the classes {classes}, got {target!r}",
        )
        number = classes.index(target) if target is not None else 1 if n == 2 else int(scores.argmax())
        return [1.0 if i == number else -1 / (n - 1) for i in range(n)], str(classes[number]), 0.0
    number = 0 if target is None else target
    check.require(type(number) is int and 0 <= number < n, f"`target` must lie in 0..{n - 1}, got {target!r}")
    level, spread = (float(np.atleast_1d(values)[number]) for values in (model.level_, model.spread_))
    name = "prediction" if n == 1 else f"target {number}"
    return [spread if i == number else 0.0 for i in range(n)], name, level


def _contribution(feature: Feature, sequence: Sequences, names: Sequence[str] | None) -> FeatureContribution:
    strongest = [filter.strongest for filter in feature.filters]
    steps = [] if feature.steps is None else [step for step in feature.steps[0].tolist() if step >= 0]
    times = steps if sequence.times is None else sequence.times[steps].tolist()
    return FeatureContribution(
        float(feature.coefficients[0]),
        feature.pool,
        feature.level,
        tuple(_named(channel, names) for channel, _ in strongest),
        tuple(lag for _, lag in strongest),
        tuple(map(float, times)),
    )


def _named(channel: str, names: Sequence[str] | None) -> str:
    """Replace the number in a channel such as `1` or `observed 1` by the name of that channel."""
    kind, _, number = channel.rpartition(" ")
    if not number.isdigit() or kind == "static":
        return channel
    name = f"channel {number}" if names is None else names[int(number)]
    return f"{kind} {name}".strip()
