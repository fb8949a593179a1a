"""How the shell answers: one sentence on stderr for a mistake of the user, a traceback for one of ours."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import typer
from typer.core import TyperGroup

from seq2tens._errors import ArgumentError

# Exit codes: a mistake in what was asked, and Ctrl-C.
REFUSED, INTERRUPTED = 2, 130
# What typer raises for options it cannot parse; it exports only this one of the family.
UsageError: type[Any] = typer.BadParameter.__bases__[0]


class UserError(Exception):
    """A sentence for the person at the shell."""


@contextmanager
def refusing(*errors: type[Exception], **names: str) -> Iterator[None]:
    """Turn what the library refuses, and other `errors`, into a `UserError`.

    The message speaks of Python arguments; `names` gives what they are called in the shell.
    """
    try:
        yield
    except (ArgumentError, *errors) as error:  # type: ignore[misc]
        raise UserError(_renamed(_sentence(error), names)) from error


def note(text: str) -> None:
    """Tell something beside the result: stderr, so that stdout can be piped."""
    typer.echo(f"seq2tens: {' '.join(text.splitlines())}", err=True)


class Shell(TyperGroup):
    """The group of verbs; it decides what an error looks like."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a verb; standing alone, the process ends with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what a terminal cannot show becomes a question mark
        alone = options.pop("standalone_mode", True)
        code = self._exit_code(*args, **options, standalone_mode=False)
        if alone:
            sys.exit(code)
        return code

    def _exit_code(self, *args: Any, **options: Any) -> int:
        # A verb whose result goes to stdout sends everything else to stderr; stdout is given back here.
        with warnings.catch_warnings(), redirect_stdout(sys.stdout):
            warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
            try:
                return int(super().main(*args, **options) or 0)
            except typer.Abort:
                return INTERRUPTED
            except UserError as error:
                note(str(error))
            except UsageError as error:
                note(error.format_message())
            return REFUSED


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def _renamed(message: str, names: dict[str, str]) -> str:
    message = re.sub(r"`(\w+)`", lambda match: f"`{names.get(match[1], match[1])}`", message)
    return re.sub(r"\bNone\b", "none", message)
