"""The command-line program `seq2tens`.

Commands import heavy modules only when they run, so that `--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

import seq2tens
from seq2tens.cli._options import flag, grouped
from seq2tens.cli._shared.catalogue import settings_help
from seq2tens.cli._shell import Shell
from seq2tens.cli.choose import choose
from seq2tens.cli.evaluate import evaluate
from seq2tens.cli.explain import explain
from seq2tens.cli.fit import fit
from seq2tens.cli.impute import impute
from seq2tens.cli.info import info
from seq2tens.cli.predict import predict
from seq2tens.cli.report import report
from seq2tens.cli.reproduce import reproduce
from seq2tens.cli.stream import stream

# Plain help is readable in a pipe as well as in a terminal.
app = typer.Typer(
    cls=Shell,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)
EPILOGS = {
    fit: settings_help("classification", "regression"),
    impute: settings_help("imputation"),
}
for verb in (choose, fit, predict, evaluate, explain, impute, stream, info, report):
    app.command(epilog=EPILOGS.get(verb))(grouped(verb))
app.add_typer(reproduce)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: Annotated[bool, flag("--version", "Print the version and exit.")] = False
) -> None:
    """Learn from sequences: train a model on a file, save it, use it.

    DATA is a file (.ts, .arff, .mat, .npz, .csv, .csv.gz, .parquet), a folder of tables or the name of a data
    set; `seq2tens info` lists the names. A .csv or .parquet file is a long table: one row per step, with
    columns id, time, label and one column per channel; an empty cell is a missing value. In a folder, each
    table is one sequence.

    Examples:

    \b
      seq2tens choose JapaneseVowels --minutes 5
      seq2tens fit JapaneseVowels --out vowels
      seq2tens evaluate vowels JapaneseVowels --confusion confusion.png
      seq2tens predict vowels recordings.csv --out predictions.csv
    """
    if version:
        typer.echo(seq2tens.__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
