"""Reports: results tables as a page, as part of a page of documentation, and as single files."""

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
