"""Shared by the commands of `seq2tens reproduce`: options, running of cells, and messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2tens.cli import _files
from seq2tens.cli._options import flag, option
from seq2tens.cli._shell import INTERRUPTED, UserError, note, refusing
from seq2tens.cli.fit import Progress

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.experiments import Experiment, Summary
    from seq2tens.experiments.core import AnyCell

# Exit code if cells have failed.
FAILED = 1
# The shell's names of the library's arguments.
OPTIONS = {
    name: f"--{name}"
    for name in ("datasets", "models", "seeds", "recipe", "workers", "threads", "progress", "data")
} | {"folder": "--data", "address": "--ray"}

Workers = Annotated[
    int | None, option("N", "Number of cells to run in parallel; they share the threads. [default: 1]")
]
Threads = Annotated[
    int | None,
    option("N", "Threads of all workers together; on Ray, of each cell. [default: one per core; on Ray 1]"),
]
Ray = Annotated[
    str | None,
    option(
        "HOST:PORT|auto",
        "Run on this Ray cluster. [default: on this machine]",
        show_default=False,
    ),
]
Models = Annotated[list[str] | None, option("A,B,…", "Which models, see above; repeatable. [default: all]")]
Out = Annotated[Path, option("FILE", "The table (.csv) that results are added to.")]
Scratch = Annotated[
    Path | None,
    option("DIR", "Folder for the state of unfinished cells. [default: .seq2tens next to the table]"),
]
DryRun = Annotated[bool, flag("--dry-run", "Only list what is finished and what would run.")]


@dataclass(frozen=True)
class Machines:
    """The machines that run cells."""

    workers: Workers = None
    threads: Threads = None
    ray: Ray = None

    def runner(self) -> Callable[..., Summary]:
        """The function that runs cells there."""
        from seq2tens import _checks as check
        from seq2tens.experiments import run, run_on_ray

        workers, threads = self.workers, self.threads
        with refusing(**OPTIONS):
            for name, number in (("workers", workers), ("threads", threads)):
                if number is not None:
                    check.positive_int(name, number)
        if self.ray is None:
            return partial(run, workers=1 if workers is None else workers, threads=threads)
        if workers is not None:
            raise UserError(
                "`--workers` cannot be combined with `--ray`, where the cores of the cluster decide"
            )
        return partial(run_on_ray, address=self.ray, threads=1 if threads is None else threads)


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: scratch folder, progress display and dry run."""

    scratch: Scratch = None
    progress: Progress = "auto"
    dry_run: DryRun = False


def names(values: list[str] | None) -> list[str] | None:
    """Collect the names from a repeatable option with lists of names."""
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",")]
    return list(dict.fromkeys(filter(None, names)))


def list_cells(cells: Sequence[AnyCell], out: Path, experiment: Experiment) -> None:
    """Print which cells are finished, which would run, and what they cost."""
    with refusing(OSError):
        done = experiment.table.finished(out)
    for cell in cells:
        typer.echo(f"{'finished' if cell.key in done else 'to run  '}  {cell}")
    n_done = sum(cell.key in done for cell in cells)
    typer.echo(f"{len(cells)} cells, {n_done} finished, {len(cells) - n_done} to run")
    typer.echo(f"{experiment.cost}\n{experiment.expected}")


def execute(
    work: Callable[[Callable[..., Summary]], Summary],
    out: Path,
    machines: Machines,
    options: RunOptions,
    names: Mapping[str, str],
) -> None:
    """Call `work` with the function that runs cells, and print a summary."""
    from seq2tens.data import ReadError

    _check_places(out, options.scratch)
    run = partial(machines.runner(), scratch=options.scratch, progress=options.progress)
    try:
        with refusing(OSError, ImportError, ReadError, **names):
            summary = work(run)
    except KeyboardInterrupt:
        note(f"interrupted; finished cells are in {out}, and the same command resumes")
        raise typer.Exit(INTERRUPTED) from None
    _print_summary(summary, out)


def _check_places(out: Path, scratch: Path | None) -> None:
    """Refuse folders that cannot be created, before hours of computing."""
    _files.check_folder(scratch, "--scratch")
    for folder, option_name in ((out.parent, "--out"), (scratch, "--scratch")):
        if folder is None:
            continue
        with refusing(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise UserError(f"`{option_name}` must be in a writable folder, got {folder}")
    _files.check_read_again(out, "--out", (".csv",))


def _print_summary(summary: Summary, out: Path) -> None:
    """Print the number of new cells on stdout, and what went wrong on stderr."""
    typer.echo(f"{len(summary.done)} cells added to {out}")
    if summary.elsewhere:
        note(f"{len(summary.elsewhere)} cells were left to another run, which is working on them")
    for cell, reason in summary.failed.items():
        note(f"{cell} failed: {reason}")
    if summary.failed:
        raise typer.Exit(FAILED)
