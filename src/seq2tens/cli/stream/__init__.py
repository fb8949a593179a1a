"""`seq2tens stream`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _files, _models
from seq2tens.cli._options import choice, count, flag, option
from seq2tens.cli._shell import UserError, note, refusing
from seq2tens.cli._stopping import Stopped, stoppable
from seq2tens.cli.stream._rows import Fields, Parser, RowError, csv_parser, json_parser
from seq2tens.cli.stream._session import Refused, Session

if TYPE_CHECKING:  # importing it takes seconds
    from seq2tens.estimators import ClassifierStream

HINT = (
    "`seq2tens fit DATA --scaling channel --set time_embedding=False --out DIR` trains a network that can be "
    "streamed"
)
Format = Annotated[str, choice("csv|jsonl", "Format of rows and predictions.")]
Every = Annotated[int, count("N", "Predict after every N-th row of a sequence.")]
Length = Annotated[
    int | None,
    count("N", "Steps of a whole sequence, for networks that use relative time. [default: no limit]"),
]
State = Annotated[
    Path | None, option("FILE", "Keep the state in this file, and resume from it if it exists.")
]
SaveEvery = Annotated[int, count("N", "Save the state after every N rows, and at the end.")]
OnError = Annotated[str, choice("stop|skip", "What to do about an invalid row.")]
Out = Annotated[Path, option("FILE", "Where to write the predictions (.csv, .jsonl; - is stdout).")]
Continue = Annotated[
    bool,
    flag("--continue", "The input begins after the rows that the state has seen; else these are skipped."),
]


@dataclass(frozen=True)
class StreamOptions:
    """Options of input, output and state."""

    format: Format = "csv"
    every: Every = 1
    length: Length = None
    state: State = None
    save_every: SaveEvery = 1000
    on_error: OnError = "stop"
    out: Out = _files.STDOUT
    force: _files.Force = False
    resume: Continue = False


def stream(folder: _models.FolderArgument, options: StreamOptions) -> None:
    """Read rows from stdin, one step each, and write each prediction immediately.

    A row is a line of CSV, after a header with the names of the channels, or a line of JSON: a list of
    values or an object. A row may have an id; a new sequence begins when it changes. A prediction has the
    number of its row, the class and the probability of each class.

    With --state, the same command resumes after it was stopped or killed: rows that the state has seen are
    skipped, and --out is truncated to match the state.

    Examples:

    \b
      sensor | seq2tens stream model
      sensor | seq2tens stream model --format jsonl --every 10
      seq2tens stream model --state state.bin --out predictions.csv < rows.csv
    """
    _check(options)
    state = options.state
    resumes = state is not None and state.exists()
    result = _files.output(options.out, "--out", (f".{options.format}",), force=options.force or resumes)
    classifier = _models.load(folder)
    opened = _opened(classifier, options.length)
    session = Session(opened, options.format, options.every, state)
    with refusing(path="--state", state="--state"):
        session.begin(result)
    try:
        with closing(session.sink), stoppable() as listener:
            lines = listener.lines(typer.get_binary_stream("stdin"))
            _feed(session, lines, Fields.of(classifier), options)
    except Stopped as stopped:
        saved = "" if state is None else f"; the same command resumes from the state in {state}"
        note(f"stopped after row {session.rows}{saved}")
        raise typer.Exit(stopped.exit_code) from None


def _opened(classifier: Any, length: int | None) -> ClassifierStream:
    """Open the stream of a model; the error for a model without one says how to train another."""
    if not hasattr(classifier, "stream"):
        kind = type(classifier).__name__
        raise UserError(f"`seq2tens stream` needs a classifier that is a network, got {kind}; {HINT}")
    try:
        with refusing(length="--length", stream="seq2tens stream"):
            return classifier.stream(length=length)
    except UserError as error:
        raise UserError(f"{error}; {HINT}") from error


def _check(options: StreamOptions) -> None:
    if options.state is not None:
        _files.check_read_again(options.state, "--state")


def _feed(session: Session, lines: Iterator[str], fields: Fields, options: StreamOptions) -> None:
    """Feed all rows after those that are skipped, and save the state at the end."""
    passed = 0 if options.resume else session.rows
    parse = _parser(session, lines, fields)
    if parse is None:
        return
    _skip_fed_rows(lines, passed)
    try:
        for line in lines:
            _take(session, parse, line, options.on_error == "skip")
            session.rows += 1
            if session.rows % options.save_every == 0:
                session.save()
    except (Stopped, UserError):  # after other errors, fed rows and written predictions may differ
        session.save()
        raise
    finally:
        if session.skipped:
            note(f"{session.skipped} of {session.rows} rows skipped")
    session.save()


def _take(session: Session, parse: Parser, line: str, skip: bool) -> None:
    try:
        session.take(parse(line))
    except RowError as error:
        if not skip:
            raise UserError(f"row {session.rows + 1}: {error}") from error
        if isinstance(error, Refused):
            session.pending = []
        session.skipped += 1
        note(f"row {session.rows + 1} skipped: {error}")


def _parser(session: Session, lines: Iterator[str], fields: Fields) -> Parser | None:
    """The parser of rows; None if the input is empty."""
    if session.format == "jsonl":
        return json_parser(fields)
    header = next(lines, None)
    if header is None:
        return None
    try:
        parse, has_id = csv_parser(header, fields)
    except RowError as error:
        raise UserError(f"the header {error}") from error
    session.header(has_id)
    return parse


def _skip_fed_rows(lines: Iterator[str], count: int) -> None:
    """Skip rows that were fed before."""
    for n_skipped in range(count):
        if next(lines, None) is None:
            raise UserError(
                f"the input must begin with the {count} rows that the state has seen, got {n_skipped}; "
                "`--continue` is for an input that begins after them"
            )
