"""The style of figures and their reproducible SVG: the same figure gives the same bytes.

Colours are few and differ in lightness; text is drawn as paths, so that it looks the same everywhere.
"""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

# In an SVG, INK becomes the colour of the surrounding text, so that it is readable on dark pages too.
INK, FAINT = "#1b1f24", "#8a929b"
BLUE, ORANGE, PALE = "#2f6db3", "#c9752d", "#b9c3cd"
WIDTH = 7.2  # inches
# Size of the palette of an image inside a figure.
COLORS = 128
# The prefix of matplotlib's names of glyphs.
LETTER = "DejaVuSans-"
# Redundant spaces in a path: around letters and at its ends.
NEEDLESS_SPACE = re.compile(r"\s+(?=[A-Za-z]|$)|(?<=[A-Za-z])\s+|^\s+")
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
    """Decorate a plotting function to use our style, whatever style is set outside."""

    @wraps(draw)
    def wrapped(*args: P.args, **options: P.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **options)

    return wrapped


def svg(figure: Figure, title: str, prefix: str) -> str:
    """Convert a figure to an `<svg>` element for a page.

    Args:
        figure: the figure.
        title: what it shows, for readers who cannot see it.
        prefix: name of the figure. It makes the ids inside differ from those of other figures on the page;
            only glyphs have the same id everywhere, see `unique_glyphs`.
    """
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    body = (
        text.getvalue()[text.getvalue().index("<svg") :]
        .replace(INK, "currentColor")
        .replace("xlink:href", "href")
    )
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = _short_names(_few_colors(_short_numbers(body)), f"{zlib.crc32(prefix.encode()):x}")
    label = escape(title, quote=True)
    return body.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1).strip()


def unique_glyphs(page: str) -> str:
    """Keep the definition of each glyph only where it first occurs on the page."""
    seen: set[str] = set()

    def first(match: re.Match[str]) -> str:
        new = match[1] not in seen
        seen.add(match[1])
        return match[0] if new else ""

    return re.sub(rf'<path id="({LETTER}[^"]*)"[^>]*/>', first, page)


def _short_numbers(body: str) -> str:
    """Round numbers to five digits and remove redundant spaces, so that pages with figures stay small."""
    body = re.sub(r"-?\d+\.\d{3,}(?!\w)", lambda match: f"{float(match[0]):.5g}", body)
    body = re.sub(r' d="([^"]*)"', lambda match: f' d="{re.sub(NEEDLESS_SPACE, "", match[1])}"', body)
    body = re.sub(r'(<use [^>]*)transform="translate\(([^ ]+) 0\)"', r'\1x="\2"', body)
    return re.sub(r">\s+<", "><", re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL))


def _few_colors(body: str) -> str:
    """Reduce opaque images inside to a palette, at less than half the size."""
    return re.sub(r'(?<="data:image/png;base64,)[^"]*', lambda match: _palette(match[0]), body)


def _palette(encoded: str) -> str:
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
        return "".join(encoded.split())
    file = io.BytesIO()
    image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _short_names(body: str, prefix: str) -> str:
    """Keep only ids that are referenced; glyphs keep their names, others get the prefix and a number."""
    names = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    short = {name: name if name.startswith(LETTER) else f"{prefix}-{i:x}" for i, name in enumerate(names)}
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", body)
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + short[m[2]], body)
