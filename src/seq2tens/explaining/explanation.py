"""What is known of one prediction: numbers that add up, rankings, a table and a picture."""

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
    """A variable at a time, its last value, whether that is of this time, and what it adds to the output."""

    variable: str
    time: float
    value: float
    measured: bool
    contribution: float


class PairOfTimes(NamedTuple):
    """Two times, and what they add to the output together and not apart."""

    first: float
    second: float
    contribution: float


class Row(NamedTuple):
    """A row of the table; what does not apply is None."""

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
        target: the class whose logit, against the mean of the others', is the output.
        output: of the sequence.
        baseline_output: of the baseline.
        names: of the variables.
        times: of the steps; 0, 1, … where the sequence has none.
        values: what was measured last, in its own unit, NaN where nothing was so far.
        measured: whether it was measured at that time.
        variables: what each variable adds at each time.
        singles: what each step adds by itself, where the network reads its last sequence.
        pairs: what step i (row) and step j > i (column) add together and not apart, steps between them
            included.
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
        """What each variable adds at all times together, the largest first."""
        sums = self.variables.sum(axis=0)
        return {self.names[c]: float(sums[c]) for c in np.argsort(-np.abs(sums), kind="stable")}

    def top_variables(self, n: int = 10) -> list[VariableAt]:
        """The variables and times that add most, up or down."""
        check.positive_int("n", n)
        order = np.argsort(-np.abs(self.variables), axis=None, kind="stable")[:n]
        return [self._variable(*divmod(int(k), len(self.names))) for k in order]

    def top_pairs(self, n: int = 10) -> list[PairOfTimes]:
        """The pairs of times that add most, up or down."""
        check.positive_int("n", n)
        first, second = np.triu_indices(len(self.times), k=1)
        order = np.argsort(-np.abs(self.pairs[first, second]), kind="stable")[:n]
        return [self._pair(first[k], second[k]) for k in order]

    def table(self) -> list[Row]:
        """Every contribution. Rows of part "variable" add up to the difference, as do the others together."""
        variables = [self._variable(*place) for place in np.ndindex(self.variables.shape)]
        singles = zip(self.times.tolist(), self.singles.tolist(), strict=True)
        pairs = [self._pair(i, j) for i, j in zip(*np.triu_indices(len(self.times), k=1), strict=True)]
        return [
            *(
                Row("variable", v.time, v.contribution, None, v.variable, _or_none(v.value), v.measured)
                for v in variables
            ),
            *(Row("single", time, contribution) for time, contribution in singles),
            *(Row("pair", p.first, p.contribution, p.second) for p in pairs),
        ]

    def to_csv(self, path: str | Path) -> None:
        """Write the table, with all digits; a file that was there stays if this fails."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(self.table())
        write_atomically(Path(path), text.getvalue().encode())

    def figure(self, *, unit: str = "time") -> Figure:
        """A heat map of times and variables, and above it single steps, and arcs between pairs of them.

        Args:
            unit: what the axis of time is called.
        """
        from seq2tens.explaining.picture import draw

        return draw(self, unit)

    def plot(self, path: str | Path, *, unit: str = "time") -> None:
        """Write `figure` as PNG, SVG or PDF, by the suffix."""
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


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
