"""A hook of mkdocs: formulas become MathML, which browsers render without scripts or network."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# The output of pymdownx.arithmatex: \\(…\\) in a line, \\[…\\] in a separate block.
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>',
    re.DOTALL,
)


def on_page_content(content: str, **_: object) -> str:
    """Convert the formulas of a page."""
    return FORMULA.sub(_draw, content)


def _draw(match: re.Match[str]) -> str:
    source = html.unescape(match[2]).strip()
    kind = "block" if match[1] == "div" else "inline"
    drawn = convert(source, display=kind)
    if "<mi>&</mi>" in drawn or "<mi>\\" in drawn:  # the converter passes unknown commands through
        raise ValueError(f"a formula must have known commands only, got {source}")
    return f'<{match[1]} class="formula" title="{html.escape(source)}">{drawn}</{match[1]}>'
