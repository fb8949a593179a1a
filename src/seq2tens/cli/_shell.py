"""Messages and exit codes: one sentence on stderr for a usage error, a traceback for a bug."""

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

# Exit codes of a usage error and of Ctrl-C.
REFUSED, INTERRUPTED = 2, 130
# The base class of typer's usage errors; of these, typer exports only `BadParameter`.
UsageError: type[Any] = typer.BadParameter.__bases__[0]


class UserError(Exception):
    """A usage error, which is shown as one sentence without a traceback."""


@contextmanager
def refusing(*errors: type[Exception], **names: str) -> Iterator[None]:
    """Turn an `ArgumentError`, or one of `errors`, into a `UserError`.

    The message mentions arguments of Python functions; `names` are their names in the shell.
    """
    try:
        yield
    except (ArgumentError, *errors) as error:  # type: ignore[misc]
        raise UserError(_renamed(_sentence(error), names)) from error


def note(text: str) -> None:
    """Print a message on stderr, so that stdout has only the result and can be piped."""
    typer.echo(f"seq2tens: {' '.join(text.splitlines())}", err=True)


class Shell(TyperGroup):
    """The group of all commands, which turns errors into messages and exit codes."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; in standalone mode, end the process with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what a terminal cannot show becomes a question mark
        standalone = options.pop("standalone_mode", True)
        code = self._exit_code(*args, **options, standalone_mode=False)
        if standalone:
            sys.exit(code)
        return code

    def _exit_code(self, *args: Any, **options: Any) -> int:
        # A command whose result goes to stdout redirects all else to stderr; this context restores stdout.
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
