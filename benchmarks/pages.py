"""Tables of results in pages of the documentation."""

from __future__ import annotations

from pathlib import Path


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """Format a table; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *lines])


def fill(page: Path, start: str, end: str, text: str) -> None:
    """Insert a text between two markers of a page."""
    before, _, rest = page.read_text().partition(start)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{start}\n\n{text}\n{end}{after}")
