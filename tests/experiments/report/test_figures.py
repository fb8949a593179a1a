"""Figures: what they show, and that the same input gives the same bytes."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib

import matplotlib as mpl
import numpy as np
import pytest

from experiments.tsc.results_table import PAPER
from seq2tens.experiments.report import figures
from seq2tens.experiments.report.statistics import Posterior, ranking
from seq2tens.experiments.report.style import svg

LABELS = {model: f"<{model}> $" for model in PAPER.models}  # to be taken literally


def posterior(left="FCN128", right="ResNet", seed=0):
    sample = np.random.default_rng(seed).dirichlet([1, 2, 3], 400)
    return Posterior(left, right, 8, sample)


def accuracies():
    return {LABELS[m]: PAPER.column(m)[~np.isnan(PAPER.column(m))].tolist() for m in PAPER.models}


POINTS = [
    figures.Point("FCN128", "ECG", 0.70, 0.86),
    figures.Point("FCN128", "Wafer", 0.99, 0.987),
    figures.Point("$_", "Shapes", 1.0, 1.0),
]
DRAWN = {
    "critical difference": lambda: figures.critical_difference_diagram(ranking(PAPER.complete()), LABELS),
    "boxes": lambda: figures.boxes(accuracies(), {}),
    "boxes with the paper's": lambda: figures.boxes(accuracies(), accuracies()),
    "one box": lambda: figures.boxes({"a": [0.5]}, {"a": []}),
    "points": lambda: figures.against_published(POINTS, 0.02),
    "bars": lambda: figures.posterior_bars([posterior(), posterior("DTW"), posterior("DTW", "MUSE")], LABELS),
    "one triangle": lambda: figures.simplex([posterior()], LABELS),
    "four triangles": lambda: figures.simplex([posterior(seed=i) for i in range(4)], LABELS),
}


@pytest.mark.parametrize("name", DRAWN)
def test_svg_is_well_formed_and_repeatable(name):
    text, again = (svg(DRAWN[name](), 'what & "why" <', "p") for _ in range(2))
    assert text == again
    root = ET.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'what & "why" <'
    assert "metadata" not in text
    assert "currentColor" in text
    assert not re.search(r"(?:href|src)\s*=\s*[\"'](?!#|data:)", text)  # nothing is fetched
    names = [found.get("id") for found in root.iter() if found.get("id")]
    own = f"{zlib.crc32(b'p'):x}-"
    assert all(found.startswith((own, "DejaVuSans-")) for found in names)
    links = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
    assert set(links) == set(names)


def test_the_style_outside_does_not_matter():
    plain = svg(DRAWN["points"](), "t", "p")
    with mpl.rc_context({"font.size": 30, "axes.edgecolor": "red", "svg.fonttype": "none"}):
        assert svg(DRAWN["points"](), "t", "p") == plain


def test_critical_difference_shows_every_model_at_its_rank():
    found = ranking(PAPER.complete())
    ax = figures.critical_difference_diagram(found, LABELS).axes[0]
    shown = {text.get_text().strip() for text in ax.texts}
    for model, rank in zip(found.models, found.ranks, strict=True):
        assert shown & {f"{LABELS[model]}  {rank:.2f}", f"{rank:.2f}  {LABELS[model]}"}
    assert f"critical difference {found.critical_difference:.2f}" in shown
    bars = [line for line in ax.lines if line.get_linewidth() > 3]
    assert len(bars) == len(found.groups)


@pytest.mark.parametrize("suffix", ["", " (published)"])
def test_nothing_of_a_critical_difference_is_cut_off(suffix):
    names = {model: f"{model}{suffix}" for model in PAPER.models}
    figure = figures.critical_difference_diagram(ranking(PAPER.complete()), names)
    figure.canvas.draw()
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height


def test_boxes_have_our_medians_beside_the_papers():
    ours, paper = {"a": [0.5, 0.6, 0.9], "b": [0.7]}, {"a": [0.4, 0.5, 0.6]}
    ax = figures.boxes(ours, paper).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    medians = sorted(float(line.get_xdata()[0]) for line in ax.lines if line.get_linewidth() == 1.6)
    assert medians == [0.5, 0.6, 0.7]
    assert sum(bool(patch.get_hatch()) for patch in ax.patches) == 1


def test_points_far_off_are_named():
    ax = figures.against_published(POINTS, 0.02).axes[0]
    assert [text.get_text() for text in ax.texts] == ["ECG"]
    drawn = [tuple(xy) for line in ax.lines[1:] for xy in line.get_xydata()]
    assert sorted(drawn) == sorted((point.published, point.ours) for point in POINTS)


def test_bars_are_the_probabilities():
    chosen = posterior()
    ax = figures.posterior_bars([chosen], LABELS).axes[0]
    widths = [patch.get_width() for patch in ax.patches]
    assert widths == pytest.approx(chosen.probabilities[::-1])
    assert ax.get_title(loc="left") == f"{LABELS['ResNet']} against"


def test_triangles_tell_the_probabilities():
    chosen = posterior()
    ax = figures.simplex([chosen], LABELS).axes[0]
    left, equivalent, right = chosen.probabilities
    assert [text.get_text() for text in ax.texts] == [
        f"{LABELS['FCN128']}\n{left:.3f}",
        f"equivalent {equivalent:.3f}",
        f"{LABELS['ResNet']}\n{right:.3f}",
    ]
    counts = np.concatenate([found.get_array() for found in ax.collections])
    assert counts.sum() == len(chosen.sample)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: figures.boxes({}, {}), "ours"),
        (lambda: figures.against_published([], 0.02), "points"),
        (lambda: figures.posterior_bars([], {}), "posteriors"),
        (lambda: figures.simplex([], {}), "posteriors"),
    ],
)
def test_nothing_to_draw_is_an_error(call, name):
    with pytest.raises(ValueError, match=f"`{name}` must hold at least one"):
        call()


@pytest.mark.slow
def test_no_global_state():
    code = "import sys, seq2tens.experiments.report.figures; print('matplotlib.pyplot' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
