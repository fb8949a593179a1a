"""The explanation of one prediction: contributions that add up, rankings, a table and a figure."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from seq2tens import _checks as check
from seq2tens._storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class VariableAt(NamedTuple):
    """A variable at a time, its last value, whether it was measured at this time, and its contribution."""

    variable: str
    time: float
    value: float
    measured: bool
    contribution: float


class PairOfTimes(NamedTuple):
    """Two times, and their joint contribution to the output beyond their single ones."""

    first: float
    second: float
    contribution: float


class Row(NamedTuple):
    """A row of the table; fields that do not apply are None."""

    part: Literal["variable", "single", "pair"]
    time: float
    contribution: float
    later: float | None = None
    variable: str | None = None
    value: float | None = None
    measured: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The difference between the outputs for a sequence and a baseline, decomposed exactly in two ways.

        output - baseline_output = Σ variables = Σ singles + Σ pairs

    Attributes:
        target: the class whose logit, minus the mean of the other logits, is the output.
        output: the output for the sequence.
        baseline_output: the output for the baseline.
        names: names of the variables.
        times: times of the steps; 0, 1, … if the sequence has none.
        values: the last measured values, in their own units; NaN before the first measurement.
        measured: whether a value was measured at that time.
        variables: contribution of each variable at each time.
        singles: contribution of each step of the last sequence that the network reduces to a vector.
        pairs: joint contribution of step i (row) and step j > i (column), with the steps between them, beyond
            their single contributions.
    """

    target: str
    output: float
    baseline_output: float
    names: tuple[str, ...]
    times: Float[np.ndarray, " time"]
    values: Float[np.ndarray, "time variables"]
    measured: Bool[np.ndarray, "time variables"]
    variables: Float[np.ndarray, "time variables"]
    singles: Float[np.ndarray, " time"]
    pairs: Float[np.ndarray, "time time"]

    def __repr__(self) -> str:
        return (
            f"Explanation(target={self.target!r}, output={self.output:.4g}, "
            f"baseline_output={self.baseline_output:.4g}, steps={len(self.times)}, "
            f"variables={len(self.names)})"
        )

    @property
    def totals(self) -> dict[str, float]:
        """Contribution of each variable, summed over time, the largest first."""
        sums = self.variables.sum(axis=0)
        return {self.names[c]: float(sums[c]) for c in np.argsort(-np.abs(sums), kind="stable")}

    def top_variables(self, n: int = 10) -> list[VariableAt]:
        """Return the variables and times with the largest contributions, positive or negative."""
        check.positive_int("n", n)
        order = np.argsort(-np.abs(self.variables), axis=None, kind="stable")[:n]
        return [self._variable(*divmod(int(k), len(self.names))) for k in order]

    def top_pairs(self, n: int = 10) -> list[PairOfTimes]:
        """Return the pairs of times with the largest contributions, positive or negative."""
        check.positive_int("n", n)
        first, second = np.triu_indices(len(self.times), k=1)
        order = np.argsort(-np.abs(self.pairs[first, second]), kind="stable")[:n]
        return [self._pair(first[k], second[k]) for k in order]

    def table(self) -> list[Row]:
        """Return all contributions.

        The rows with part "variable" add up to the difference of outputs; so do all other rows together.
        """
        variables = [self._variable(*indices) for indices in np.ndindex(self.variables.shape)]
        singles = zip(self.times.tolist(), self.singles.tolist(), strict=True)
        pairs = [self._pair(i, j) for i, j in zip(*np.triu_indices(len(self.times), k=1), strict=True)]
        return [
            *(
                Row("variable", v.time, v.contribution, None, v.variable, _nan_to_none(v.value), v.measured)
                for v in variables
            ),
            *(Row("single", time, contribution) for time, contribution in singles),
            *(Row("pair", p.first, p.contribution, p.second) for p in pairs),
        ]

    def to_csv(self, path: str | Path) -> None:
        """Write the table with all digits, atomically."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(self.table())
        write_atomically(Path(path), text.getvalue().encode())

    def figure(self, *, unit: str = "time") -> Figure:
        """Draw a heat map of times and variables; above it single steps, and arcs between pairs of steps.

        Args:
            unit: label of the time axis.
        """
        from seq2tens.explaining.picture import draw

        return draw(self, unit)

    def plot(self, path: str | Path, *, unit: str = "time") -> None:
        """Write `figure` as PNG, SVG or PDF, according to the suffix."""
        from seq2tens import plots

        plots.picture_suffix(Path(path))
        plots.save(self.figure(unit=unit), path)

    def _variable(self, i: int, c: int) -> VariableAt:
        return VariableAt(
            self.names[c],
            float(self.times[i]),
            float(self.values[i, c]),
            bool(self.measured[i, c]),
            float(self.variables[i, c]),
        )

    def _pair(self, i: int, j: int) -> PairOfTimes:
        return PairOfTimes(float(self.times[i]), float(self.times[j]), float(self.pairs[i, j]))


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value
