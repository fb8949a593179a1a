"""A report as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template
from typing import NamedTuple

from seq2tens.experiments.report.blocks import Block, Missing, Part, Picture, Section
from seq2tens.experiments.report.overview import overview
from seq2tens.experiments.report.style import svg, unique_glyphs
from seq2tens.experiments.report.tables import Entry, Table

# Longer texts may be wrapped, and longer tables scroll within a box.
LONG_TEXT, MOST_ROWS = 60, 30


def page(sections: Sequence[Section], *, title: str, lead: str, origin: str) -> str:
    """A page with all sections; `lead` and `origin` are texts at the top and at the bottom."""
    text = Template(_file("page.html")).substitute(
        title=escape(title),
        style=_file("page.css"),
        script=_file("page.js"),
        lead=_text(lead),
        origin=_text(origin),
        overview=_overview(sections),
        contents=_contents(sections),
        body="\n".join(map(_section, sections)),
    )
    return unique_glyphs(text)


def _file(name: str) -> str:
    return (resources.files("seq2tens.experiments.report") / name).read_text(encoding="utf-8").strip()


def _overview(sections: Sequence[Section]) -> str:
    picture = overview(sections)
    return "" if picture is None else _picture(picture, "page")


def _contents(sections: Sequence[Section]) -> str:
    """The table of contents: each experiment with its parts."""
    return "\n".join(f"<section>\n{_links(section)}\n</section>" for section in sections)


def _links(section: Section) -> str:
    parts = "\n".join(
        f'<li><a href="#{_anchor(section, part)}">{escape(part.title)}</a></li>' for part in section.parts
    )
    return f'<h2><a href="#{section.name}">{escape(section.title)}</a></h2>\n<ul>\n{parts}\n</ul>'


def _anchor(section: Section, part: Part) -> str:
    return f"{section.name}-{re.sub('[^a-z]+', '-', part.title.lower())}"


def _section(section: Section) -> str:
    parts = [
        f'<h3 id="{_anchor(section, part)}">{escape(part.title)}</h3>\n'
        + "\n".join(_block(block, section.name) for block in _missing_last(part.blocks))
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
    if isinstance(block, Missing):
        lines = "\n".join(f"<p>{_text(line)}</p>" for line in block.splitlines())
        return f'<details class="missing">\n<summary>Not run yet</summary>\n{lines}\n</details>'
    return f"<p>{_text(block)}</p>"


def _missing_last(blocks: Sequence[Block]) -> list[Block]:
    """Collect all texts about what has not been run in one block at the end."""
    missing = [block for block in blocks if isinstance(block, Missing)]
    rest = [block for block in blocks if not isinstance(block, Missing)]
    return [*rest, *([Missing("\n".join(missing))] if missing else [])]


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
    """A box that scrolls, also by keyboard, for content that may be wider than the screen."""
    label = f'role="region" tabindex="0" aria-label="{escape(name)}"'
    return f'<div class="scroll{kind}" {label}>\n{content}\n</div>'


def _table(table: Table, prefix: str) -> str:
    columns = [_Column(text, idle) for text, idle in zip(table.texts, table.idle_columns, strict=True)]
    heads = "".join(_head(name, column) for name, column in zip(table.header, columns, strict=True))
    body = "\n".join(_row(row, columns, idle) for row, idle in zip(table.rows, table.idle_rows, strict=True))
    foot = f"<tfoot>\n{_row(table.last, columns)}\n</tfoot>\n" if table.last else ""
    html = f"<table>\n<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{body}\n</tbody>\n{foot}</table>"
    notes = "\n".join(f'<p class="notes">{_text(note)}</p>' for note in table.notes)
    caption = f"<figcaption>{_text(table.caption)}</figcaption>"
    box = _box(html, table.caption, " long" if len(table.rows) > MOST_ROWS else "")
    name = f"{prefix}-{table.name}"
    return f'<figure class="table" id="{name}">\n{caption}\n{_unfold(table, name)}{box}\n{notes}\n</figure>'


class _Column(NamedTuple):
    """The look of a column: text is left-aligned, and an idle column is collapsed."""

    text: bool
    idle: bool


def _unfold(table: Table, name: str) -> str:
    """A checkbox that shows rows and columns that have not been run; empty if there are none."""
    idle = [(sum(table.idle_rows), "row"), (sum(table.idle_columns), "column")]
    if all(table.idle_rows) or not any(number for number, _ in idle):
        return ""
    texts = " and ".join(f"{number} {noun}{'s' * (number > 1)}" for number, noun in idle if number)
    label = f'<label for="{name}-idle">Show {texts} not run yet</label>'
    return f'<input type="checkbox" class="unfold" id="{name}-idle">\n{label}\n'


def _head(name: str, column: _Column) -> str:
    button = f'<button type="button">{escape(name)}</button>'
    return f'<th scope="col" aria-sort="none"{_classes(*_column_kinds(column))}>{button}</th>'


def _column_kinds(column: _Column) -> list[str]:
    return ["text"] * column.text + ["idle"] * column.idle


def _classes(*names: str) -> str:
    return f' class="{" ".join(names)}"' if names else ""


def _row(row: Sequence[Entry], columns: Sequence[_Column], idle: bool = False) -> str:
    first, *others = row
    cells = "".join(_entry(entry, column) for entry, column in zip(others, columns[1:], strict=True))
    return f'<tr{_classes(*["idle"] * idle)}><th scope="row">{_breakable(first.text)}</th>{cells}</tr>'


def _breakable(name: str) -> str:
    """A name that may be wrapped before its capitals on narrow screens."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(name))


def _entry(entry: Entry, column: _Column) -> str:
    absent = entry.is_absent
    kind = _classes(*_column_kinds(column), *["prose"] * (len(entry.text) > LONG_TEXT), *["absent"] * absent)
    value = "" if entry.value is None else f' data-value="{entry.value:.10g}"'
    return f"<td{kind}{value}{' data-absent' * absent}>{_number(entry.text)}{_published(entry)}</td>"


def _number(text: str) -> str:
    """Format a number; the spread after a mean is shown less prominently."""
    mean, spread, rest = text.partition(" ±")
    return escape(mean) + (f'<span class="spread">{escape(spread + rest)}</span>' if spread else "")


def _published(entry: Entry) -> str:
    if entry.published is None:
        return ""
    return f'<span class="paper">paper {entry.published_label}{_change(entry)}</span>'


def _change(entry: Entry) -> str:
    """The difference: a shape shows its sign, a colour and a title whether it is better or worse."""
    if entry.change is None:
        return ""
    if entry.change == 0:
        return '<span class="change">=</span>'
    kind = _classes("change", *filter(None, [entry.verdict]), *["far"] * entry.is_far)
    title = f' title="{entry.verdict} than published"' if entry.verdict else ""
    return f"<span{kind}{title}>{'▲' if entry.change > 0 else '▼'} {entry.change_text}</span>"
