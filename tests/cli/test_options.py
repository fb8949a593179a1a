"""Options that a verb takes together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from seq2tens.cli._options import flag, grouped, option

Size = Annotated[int, option("N", "How many.")]
Dry = Annotated[bool, flag("--dry", "Only look.")]
Named = Annotated[str | None, option("TEXT", "A name.", "--called")]


@dataclass(frozen=True)
class Sizes:
    batch_size: Size = 3
    name: Named = None


def verb(
    folder: Annotated[Path, typer.Argument()],
    *,
    before: Size = 1,
    sizes: Sizes,
    dry: Dry = False,
) -> None:
    """Do something."""
    typer.echo(f"{folder} {before} {sizes} {dry}")


def shell(*arguments):
    app = typer.Typer()
    app.command()(grouped(verb))
    return CliRunner().invoke(app, arguments)


def test_a_verb_gets_its_options_together():
    assert shell("x").stdout == f"x 1 {Sizes()} False\n"
    stdout = shell("x", "--batch-size", "7", "--called", "me", "--dry", "--before", "2").stdout
    assert stdout == f"x 2 {Sizes(7, 'me')} True\n"


def test_in_the_shell_they_stand_one_by_one_in_their_place():
    text = shell("--help").stdout
    places = [text.index(name) for name in ("Do something", "--before", "--batch-size", "--called", "--dry")]
    assert places == sorted(places)
    assert "--no-dry" not in text
    assert shell("x", "--batch-size", "many").exit_code == 2
