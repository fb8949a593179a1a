"""`seq2tens report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2tens.cli import _files
from seq2tens.cli._shell import UserError, refusing

ResultsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS",
        help="A results table such as results/tsc.csv or results/mortality.csv, or the folder of both.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write one HTML page with all there is.")
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown",
        metavar="FILE",
        help="Put the main tables between the marks of this Markdown page.",
    ),
]
Parts = Annotated[
    Path | None,
    typer.Option(
        "--parts",
        metavar="DIR",
        help="Write every table (.md, .csv, .tex) and every figure (.svg) as a file of its own.",
    ),
]


def report(results: ResultsArgument, out: Out = None, markdown: Markdown = None, parts: Parts = None) -> None:
    """Tell what the finished runs of an experiment say.

    The page sets our results beside the paper's, with spreads and differences, times and memory; for the
    classification experiment also mean ranks, critical differences and the Bayesian signed-rank test. What
    has not been run is shown as such, so that a report can be made at any time. The page needs nothing but
    itself: it can be mailed, printed and read on a phone. Nothing is trained.

    Examples:

    \b
      seq2tens report results/tsc.csv --out report.html
      seq2tens report results --markdown docs/results.md
      seq2tens report results --parts tables
    """
    _check(out, markdown, parts)
    from seq2tens.experiments import report as reports

    with refusing(OSError, UnicodeDecodeError):
        sources = reports.read(results)
    if markdown is not None:
        _write_markdown(markdown, reports.markdown(sources))
    if out is None and parts is None:
        return
    sections = reports.sections(sources)
    if out is not None:
        command = f"seq2tens report {results} --out {out}"
        _files.write_text(out, reports.page(sections, sources, command))
        typer.echo(f"saved {out}")
    if parts is not None:
        _write_parts(parts, reports.files(sections))


def _check(out: Path | None, markdown: Path | None, parts: Path | None) -> None:
    if out is markdown is parts is None:
        raise UserError("one of `--out`, `--markdown` and `--parts` must say where the report goes, got none")
    if out is not None:
        _files.writable(out, "--out")
    if markdown is not None:
        _files.writable(markdown, "--markdown")
    if parts is not None and parts.is_file():
        raise UserError(f"`--parts` must be a folder, got the file {parts}")


def _write_markdown(path: Path, tables: str) -> None:
    from seq2tens.experiments.report import between_marks

    with refusing(OSError, UnicodeDecodeError):
        text = between_marks(path.read_text(encoding="utf-8"), tables, path)
    _files.write_text(path, text)
    typer.echo(f"saved {path}")


def _write_parts(folder: Path, files: dict[str, str]) -> None:
    with refusing(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        _files.write_text(folder / name, text)
    typer.echo(f"saved {len(files)} files in {folder}")
