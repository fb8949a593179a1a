"""Rankings, the table and the picture of an explanation."""

import csv
from itertools import pairwise

import matplotlib.image
import numpy as np
import pytest

from seq2tens.explaining import Explanation


def explanation(steps=20, variables=5, seed=0):
    rng = np.random.default_rng(seed)
    measured = rng.random((steps, variables)) < 0.5
    measured[:, 0] = True
    parts, singles = rng.normal(size=(steps, variables)), rng.normal(size=steps)
    pairs = np.triu(rng.normal(size=(steps, steps)), k=1)
    singles[0] += parts.sum() - singles.sum() - pairs.sum()
    return Explanation(
        target="died",
        output=1.5,
        baseline_output=1.5 - parts.sum(),
        names=tuple(f"variable {c}" for c in range(variables)),
        times=np.cumsum(rng.exponential(size=steps)),
        values=np.where(measured, parts + 10, np.nan),
        measured=measured,
        variables=parts,
        singles=singles,
        pairs=pairs,
    )


def test_rankings():
    e = explanation()
    top = e.top_variables(7)
    assert len(top) == 7
    sizes = sorted(np.abs(e.variables).ravel(), reverse=True)
    assert [abs(at.contribution) for at in top] == sizes[:7]
    i, c = e.times.tolist().index(top[0].time), e.names.index(top[0].variable)
    assert top[0].contribution == e.variables[i, c]
    assert top[0].measured == e.measured[i, c]
    pairs = e.top_pairs(1000)
    assert len(pairs) == 190
    assert all(abs(a.contribution) >= abs(b.contribution) and a.first < a.second for a, b in pairwise(pairs))
    assert sum(pair.contribution for pair in pairs) == pytest.approx(e.pairs.sum())
    assert sum(e.totals.values()) == pytest.approx(e.variables.sum())
    with pytest.raises(ValueError, match="`n` must be at least 1, got 0"):
        e.top_pairs(0)
    assert explanation(steps=1).top_pairs() == []


def test_table(tmp_path):
    e = explanation()
    e.to_csv(tmp_path / "e.csv")
    with open(tmp_path / "e.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(e.table()) == 20 * 5 + 20 + 190
    difference = e.output - e.baseline_output
    for parts in ({"variable"}, {"single", "pair"}):
        total = sum(float(row["contribution"]) for row in rows if row["part"] in parts)
        assert total == pytest.approx(difference)
    first, *_ = rows
    assert first["variable"] == "variable 0"
    assert float(first["value"]) == e.values[0, 0]
    unknown = [row for row in rows if row["measured"] == "False"]
    assert len(unknown) == (~e.measured).sum()
    assert {row["value"] for row in unknown} == {""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv"]


def test_repr():
    assert repr(explanation()).startswith("Explanation(target='died', output=1.5, baseline_output=")


@pytest.mark.parametrize(
    ("steps", "variables", "rows", "arcs"), [(1, 1, 1, 0), (3, 2, 2, 3), (90, 44, 44, 30), (20, 300, 48, 30)]
)
def test_picture(steps, variables, rows, arcs):
    e = explanation(steps, variables)
    figure = e.figure(unit="hours")
    heat, alone, above, totals, _ = figure.axes
    assert len(heat.get_yticklabels()) == rows
    assert heat.get_xlabel() == "hours"
    assert len(above.patches) == arcs
    assert len(alone.patches) == steps
    shown = heat.images[0].get_array()
    assert shown.sum() == pytest.approx(e.variables.sum())
    assert heat.images[0].norm.vmin == -heat.images[0].norm.vmax
    assert sum(bar.get_width() for bar in totals.patches) == pytest.approx(e.variables.sum())


def test_pictures_are_files(tmp_path):
    explanation(9).plot(tmp_path / "e.png", unit="hours")
    assert matplotlib.image.imread(tmp_path / "e.png").std() > 0.05


def test_the_axis_tells_the_times():
    e = explanation(40)
    heat = e.figure().axes[0]
    for label in heat.get_xticklabels():
        step = label.get_position()[0]
        assert np.interp(step, np.arange(40), e.times) == pytest.approx(float(label.get_text()))


def test_pictures_have_known_suffixes(tmp_path):
    with pytest.raises(ValueError, match=r"must end with one of \.png, \.svg, \.pdf"):
        explanation().plot(tmp_path / "e.bmp")
