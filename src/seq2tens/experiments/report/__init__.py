"""Reports of results tables: an HTML page, part of a Markdown page, or single files."""

from seq2tens.experiments.report.outputs import (
    END,
    START,
    between_marks,
    files,
    markdown,
    page,
    read,
    sections,
    shown,
)

__all__ = ["END", "START", "between_marks", "files", "markdown", "page", "read", "sections", "shown"]
