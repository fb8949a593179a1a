"""`seq2tens reproduce`: the paper's experiments."""

from __future__ import annotations

import typer

from seq2tens.cli._options import grouped
from seq2tens.cli.reproduce.imputation import imputation
from seq2tens.cli.reproduce.mortality import mortality
from seq2tens.cli.reproduce.tsc import tsc

reproduce = typer.Typer(
    name="reproduce", no_args_is_help=True, rich_markup_mode=None, context_settings={"max_content_width": 100}
)


@reproduce.callback()
def root() -> None:
    """Run the paper's experiments."""


for experiment in (mortality, imputation, tsc):
    reproduce.command()(grouped(experiment))
