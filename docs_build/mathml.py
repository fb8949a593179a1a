"""A hook of mkdocs: formulas become MathML, which browsers draw by themselves, without scripts or network."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves behind: \\(…\\) in a line, \\[…\\] on its own.
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>',
    re.DOTALL,
)


def on_page_content(content: str, **_: object) -> str:
    """The page with its formulas drawn."""
    return FORMULA.sub(_draw, content)


def _draw(found: re.Match[str]) -> str:
    source = html.unescape(found[2]).strip()
    kind = "block" if found[1] == "div" else "inline"
    drawn = convert(source, display=kind)
    if (
        "<mi>&</mi>" in drawn or "<mi>\\" in drawn
    ):  # left over from something that the converter does not know
        raise ValueError(f"a formula cannot be drawn: {source}")
    return f'<{found[1]} class="formula" title="{html.escape(source)}">{drawn}</{found[1]}>'
