"""`seq2tens report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2tens.cli import _files
from seq2tens.cli._options import option
from seq2tens.cli._shell import UserError, refusing

ResultsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS",
        help="A results table such as results/tsc.csv, or the folder with all of them.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None, option("FILE", "Write one HTML page with all tables and figures (.html; - is stdout).")
]
Markdown = Annotated[
    Path | None, option("FILE", "Insert the main tables between the markers of this Markdown page.")
]
Parts = Annotated[
    Path | None,
    option("DIR", "Write every table (.md, .csv, .tex) and every figure (.svg) as a separate file."),
]


def report(
    results: ResultsArgument,
    out: Out = None,
    markdown: Markdown = None,
    parts: Parts = None,
    force: _files.Force = False,
) -> None:
    """Summarise the finished runs of an experiment.

    The report compares our results with the paper's, with standard deviations, differences, times and memory;
    for the classification experiment also with mean ranks, critical differences and the Bayesian signed-rank
    test. Cells that have not been run are shown as such. The HTML page is self-contained. Nothing is trained.

    Examples:

    \b
      seq2tens report results/tsc.csv --out report.html
      seq2tens report results --markdown docs/results.md
      seq2tens report results --parts tables
    """
    _check(out, markdown, parts)
    page = None if out is None else _files.output(out, "--out", (".html", ".htm"), force=force)
    from seq2tens.experiments import report as reports

    with refusing(OSError, UnicodeDecodeError):
        sources = reports.read(results)
    if markdown is not None:
        _write_markdown(markdown, reports.markdown(sources))
    if page is None and parts is None:
        return
    sections = reports.sections(sources)
    if page is not None and out is not None:
        command = f"seq2tens report {reports.shown(results)} --out {reports.shown(out)}"
        page.write(reports.page(sections, sources, command))
    if parts is not None:
        _write_parts(parts, reports.files(sections), force)


def _check(out: Path | None, markdown: Path | None, parts: Path | None) -> None:
    if out is markdown is parts is None:
        raise UserError("at least one of `--out`, `--markdown` and `--parts` must be given, got none")
    if markdown is not None:
        _files.check_read_again(markdown, "--markdown")
    _files.check_folder(parts, "--parts")


def _write_markdown(path: Path, tables: str) -> None:
    from seq2tens.experiments.report import between_marks

    with refusing(OSError, UnicodeDecodeError):
        text = between_marks(path.read_text(encoding="utf-8"), tables, path)
    _files.Output(path).write(text)


def _write_parts(folder: Path, files: dict[str, str], force: bool) -> None:
    outputs = _files.outputs(folder, list(files), "--parts", force=force)
    for output, text in zip(outputs, files.values(), strict=True):
        output.write(text, verbose=False)
    typer.echo(f"saved {len(files)} files in {folder}")
