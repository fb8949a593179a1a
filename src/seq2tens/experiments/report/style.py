"""How figures look, and how they become SVG: the same figure gives the same bytes.

Colours are few and differ in lightness; text is drawn as paths, so that it looks the same everywhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure

# Ink becomes the colour of the text around an SVG, so that it can be read on dark pages too.
INK, FAINT = "#1b1f24", "#8a929b"
BLUE, ORANGE, PALE = "#2f6db3", "#c9752d", "#b9c3cd"
WIDTH = 7.2  # inches
STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "seq2tens",
}
P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Have a function draw in the house's style, whatever style is set outside."""

    @wraps(draw)
    def wrapped(*args: P.args, **options: P.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **options)

    return wrapped


def svg(figure: Figure, title: str, prefix: str) -> str:
    """A figure as an `<svg>` element for a page.

    Args:
        figure: what to write.
        title: what it shows, for those who cannot see it.
        prefix: begins all names inside, which must differ from those of other figures on the page.
    """
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    body = text.getvalue()[text.getvalue().index("<svg") :].replace(INK, "currentColor")
    body = re.sub(r'(\sid="|href="#|url\(#)', lambda match: f"{match[1]}{prefix}-", body)
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    label = escape(title, quote=True)
    return body.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1).strip()
