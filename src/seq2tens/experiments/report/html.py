"""A report as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from seq2tens.experiments.report.blocks import Block, Part, Picture, Section
from seq2tens.experiments.report.style import svg
from seq2tens.experiments.report.tables import Entry, Table

# Longer texts may be broken into lines, and longer tables scroll within a box.
LONG_TEXT, MOST_ROWS = 60, 30


def page(sections: Sequence[Section], *, title: str, lead: str, origin: str) -> str:
    """All sections; `lead` and `origin` are texts at the top and at the bottom."""
    return Template(_file("page.html")).substitute(
        title=escape(title),
        style=_file("page.css"),
        script=_file("page.js"),
        lead=_text(lead),
        origin=_text(origin),
        contents=_contents(sections),
        body="\n".join(map(_section, sections)),
    )


def _file(name: str) -> str:
    return (resources.files("seq2tens.experiments.report") / name).read_text(encoding="utf-8").strip()


def _contents(sections: Sequence[Section]) -> str:
    links = [
        f'<li><a href="#{_anchor(section, part)}">{escape(part.title)}</a></li>'
        for section in sections
        for part in section.parts
    ]
    return f"<ul>\n{chr(10).join(links)}\n</ul>"


def _anchor(section: Section, part: Part) -> str:
    return f"{section.name}-{re.sub('[^a-z]+', '-', part.title.lower())}"


def _section(section: Section) -> str:
    parts = [
        f'<h3 id="{_anchor(section, part)}">{escape(part.title)}</h3>\n'
        + "\n".join(_block(block, section.name) for block in part.blocks)
        for part in section.parts
    ]
    return (
        f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{chr(10).join(parts)}\n</section>'
    )


def _block(block: Block, prefix: str) -> str:
    if isinstance(block, Table):
        return _table(block, prefix)
    if isinstance(block, Picture):
        return _picture(block, prefix)
    return f"<p>{_text(block)}</p>"


def _text(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _picture(picture: Picture, prefix: str) -> str:
    name = f"{prefix}-{picture.name}"
    drawing = svg(picture.figure, picture.caption, name)
    return (
        f'<figure class="picture" id="{name}">\n<figcaption>{_text(picture.caption)}</figcaption>\n'
        f"{_box(drawing, picture.caption)}\n</figure>"
    )


def _box(content: str, name: str, kind: str = "") -> str:
    """What may be wider than the screen scrolls by itself, by keyboard too."""
    label = f'role="region" tabindex="0" aria-label="{escape(name)}"'
    return f'<div class="scroll{kind}" {label}>\n{content}\n</div>'


def _table(table: Table, prefix: str) -> str:
    texts = table.texts
    heads = "".join(_head(name, text) for name, text in zip(table.header, texts, strict=True))
    body = "\n".join(_row(row, texts) for row in table.rows)
    foot = f"<tfoot>\n{_row(table.last, texts)}\n</tfoot>\n" if table.last else ""
    html = f"<table>\n<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{body}\n</tbody>\n{foot}</table>"
    notes = "\n".join(f'<p class="notes">{_text(note)}</p>' for note in table.notes)
    caption = f"<figcaption>{_text(table.caption)}</figcaption>"
    box = _box(html, table.caption, " long" if len(table.rows) > MOST_ROWS else "")
    return f'<figure class="table" id="{prefix}-{table.name}">\n{caption}\n{box}\n{notes}\n</figure>'


def _head(name: str, text: bool) -> str:
    kind = ' class="text"' if text else ""
    return f'<th scope="col" aria-sort="none"{kind}><button type="button">{escape(name)}</button></th>'


def _row(row: Sequence[Entry], texts: Sequence[bool]) -> str:
    first, *others = row
    cells = "".join(_entry(entry, text) for entry, text in zip(others, texts[1:], strict=True))
    return f'<tr><th scope="row">{_breakable(first.text)}</th>{cells}</tr>'


def _breakable(name: str) -> str:
    """A name that may be broken before its capitals, on narrow screens."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(name))


def _entry(entry: Entry, text: bool) -> str:
    absent = entry.is_absent
    classes = ["text"] * text + ["prose"] * (len(entry.text) > LONG_TEXT) + ["absent"] * absent
    kind = f' class="{" ".join(classes)}"' if classes else ""
    value = "" if entry.value is None else f' data-value="{entry.value:.10g}"'
    return f"<td{kind}{value}{' data-absent' * absent}>{_number(entry.text)}{_published(entry)}</td>"


def _number(text: str) -> str:
    """The spread after a mean is of less importance."""
    mean, spread, rest = text.partition(" ±")
    return escape(mean) + (f'<span class="spread">{escape(spread + rest)}</span>' if spread else "")


def _published(entry: Entry) -> str:
    if entry.published is None:
        return ""
    return f'<span class="paper">paper {entry.published_label}{_change(entry)}</span>'


def _change(entry: Entry) -> str:
    """The difference, told by sign and shape as well as by colour."""
    if entry.change is None:
        return ""
    kind, mark = ("same", "=") if entry.change == 0 else ("up", "▲") if entry.change > 0 else ("down", "▼")
    far = " far" if entry.is_far else ""
    text = "" if entry.change == 0 else f" {entry.change_text}"
    return f'<span class="{kind}{far}">{mark}{text}</span>'
