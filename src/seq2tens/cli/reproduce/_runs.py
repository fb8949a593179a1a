"""What the verbs of `seq2tens reproduce` share: options, where to run, and what to say of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2tens.cli import _files
from seq2tens.cli._shell import INTERRUPTED, UserError, note, refusing

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.experiments import Experiment, Summary
    from seq2tens.experiments.core import AnyCell

# Exit code where cells have failed.
FAILED = 1
# What the arguments of the library are called in the shell.
OPTIONS = {
    name: f"--{name}"
    for name in ("datasets", "models", "seeds", "recipe", "workers", "threads", "progress", "data")
} | {"folder": "--data", "address": "--ray"}

Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Cells at a time; they share the threads. [default: 1]"),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Of all workers together; on Ray, of each cell. [default: one for every core; on Ray 1]",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="HOST:PORT|auto",
        help="Run on this Ray cluster, wherever it has cores. [default: on this machine]",
        show_default=False,
    ),
]
Out = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="The table (.csv) that results are added to.")
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        metavar="DIR",
        help="Folder for the state of unfinished cells. [default: .seq2tens beside the table]",
    ),
]
Progress = Annotated[
    str,
    typer.Option("--progress", metavar="auto|bar|lines|silent", help="What to show meanwhile, on stderr."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what is finished and what would run.")]


def names(given: list[str] | None) -> list[str] | None:
    """Names from options that may be repeated, and hold several each."""
    if not given:
        return None
    names = [name.strip() for part in given for name in part.split(",")]
    return list(dict.fromkeys(filter(None, names)))


def list_cells(cells: Sequence[AnyCell], out: Path, experiment: Experiment) -> None:
    """What is finished, what would run, and what it costs."""
    with refusing(OSError):
        done = experiment.table.finished(out)
    for cell in cells:
        typer.echo(f"{'finished' if cell.key in done else 'to run  '}  {cell}")
    there = sum(cell.key in done for cell in cells)
    typer.echo(f"{len(cells)} cells, {there} finished, {len(cells) - there} to run")
    typer.echo(f"{experiment.cost}\n{experiment.expected}")


def check_places(out: Path, scratch: Path | None) -> None:
    """Refuse folders that cannot be made, before hours of computing."""
    _files.check_folder(scratch, "--scratch")
    for folder, option in ((out.parent, "--out"), (scratch, "--scratch")):
        if folder is None:
            continue
        with refusing(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise UserError(f"`{option}` must lie in a folder that can be written to, got {folder}")
    _files.kept(out, "--out", (".csv",))


def runner(ray: str | None, workers: int | None, threads: int | None) -> Callable[..., Summary]:
    """Where to run."""
    from seq2tens import _checks as check
    from seq2tens.experiments import run, run_on_ray

    with refusing(**OPTIONS):
        for name, number in (("workers", workers), ("threads", threads)):
            if number is not None:
                check.positive_int(name, number)
    if ray is None:
        return partial(run, workers=1 if workers is None else workers, threads=threads)
    if workers is not None:
        raise UserError("`--workers` is for this machine, but with `--ray` the cluster's cores decide")
    return partial(run_on_ray, address=ray, threads=1 if threads is None else threads)


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Say what becomes of the work after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; what is finished is in {out}, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None


def tell(summary: Summary, out: Path) -> None:
    """What is new on stdout, what is not as it should be on stderr."""
    typer.echo(f"{len(summary.done)} cells added to {out}")
    if summary.elsewhere:
        note(f"{len(summary.elsewhere)} cells were left to another run that is at work on them")
    for cell, reason in summary.failed.items():
        note(f"{cell} failed: {reason}")
    if summary.failed:
        raise typer.Exit(FAILED)
