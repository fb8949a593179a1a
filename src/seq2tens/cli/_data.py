"""The argument DATA: a file or a data set, and the options that say how to read it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seq2tens._archives import bundled_files, packed_files
from seq2tens._errors import ArgumentError, did_you_mean
from seq2tens.cli._options import choice, option
from seq2tens.cli._shell import UserError, note, refusing

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Columns, Labelled, Sequences, Split

Half = Literal["train", "test"]
TABLES = (".csv", ".csv.gz", ".parquet")
# What arguments of `read` are called in the shell.
NAMES = {
    "split": "--split",
    "separator": "--separator",
    "decimal": "--decimal",
    "unit": "--time-unit",
    "channels": "--channel-columns",
    "categories": "--category-columns",
}
FILES = (".ts", ".arff", ".mat", ".npz")
# How a reader says that a column is not there; its advice is for Python.
NO_COLUMN = re.compile(r"must have a column `(?P<name>.*?)`, found (?P<known>[^;]*)")
ADVICE = re.compile(r"; `\w+=None` .*$")
# Names beyond so many are only counted.
SHOWN = 12

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.ts, .arff, .mat, .npz, .csv, .csv.gz, .parquet), a folder of tables or the name of a "
        "data set.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    str | None, choice("train|test", "Which part, for data with two.", show_default=False)
]
IdColumn = Annotated[
    str | None, option("NAME", "Long tables: the column that identifies sequences. [default: id]")
]
TimeColumn = Annotated[str | None, option("NAME", "Long tables: the time of a step. [default: time]")]
LabelColumn = Annotated[str | None, option("NAME", "Long tables: the class or number. [default: label]")]
ChannelColumns = Annotated[
    str | None, option("A,B,…", "Long tables: the channels. [default: all other columns]")
]
StaticColumns = Annotated[
    str | None, option("A,B,…", "Long tables: features that do not change within a sequence. [default: none]")
]
CategoryColumns = Annotated[str | None, option("A,B,…", "Long tables: categorical columns. [default: none]")]
TimeUnit = Annotated[str | None, option("ns|us|ms|s|min|h|d", "Long tables: unit of datetimes. [default: s]")]
Separator = Annotated[str | None, option("C", "Separator of a .csv file. [default: guessed]")]
Decimal = Annotated[str | None, option(".|,", "Decimal mark of a .csv file. [default: guessed]")]


@dataclass(frozen=True)
class TableReading:
    """How to read a long table: names of columns and more, None where the user did not say."""

    id_column: IdColumn = None
    time_column: TimeColumn = None
    label_column: LabelColumn = None
    channel_columns: ChannelColumns = None
    static_columns: StaticColumns = None
    category_columns: CategoryColumns = None
    time_unit: TimeUnit = None
    separator: Separator = None
    decimal: Decimal = None

    @property
    def named(self) -> dict[str, Any]:
        """What the user said about columns."""
        columns: dict[str, Any] = {
            "id": self.id_column,
            "time": self.time_column,
            "label": self.label_column,
            "unit": self.time_unit,
        }
        lists = {
            "channels": self.channel_columns,
            "static": self.static_columns,
            "categories": self.category_columns,
        }
        columns |= {key: tuple(map(str.strip, names.split(","))) for key, names in lists.items() if names}
        return {key: column for key, column in columns.items() if column}

    @property
    def written(self) -> dict[str, str]:
        """What the user said about the text of a `.csv` file."""
        marks = {"separator": self.separator, "decimal": self.decimal}
        return {key: mark for key, mark in marks.items() if mark is not None}

    def columns(self, known: Columns | None = None, *, label_optional: bool = False) -> Columns:
        """Columns as the user named them, else as `known`, else the usual ones."""
        from seq2tens.data import Columns

        # A name that the user gave and that is not there is a slip.
        optional = label_optional and self.label_column is None
        with refusing(**NAMES):
            columns = replace(known or Columns(), label_optional=optional, **self.named)
        if columns.encoding is None or columns.channels is None:
            return columns
        return replace(columns, encoding=columns.encoding.renamed(columns.channels))


@dataclass(frozen=True)
class Reading(TableReading):
    """How to read DATA: which half as well."""

    split: SplitOption = None


def check(data: str) -> None:
    """Refuse a DATA that is not there, before anything heavy is imported."""
    path = Path(data)
    if path.exists():
        return
    if path.suffix.lower() in (*FILES, *TABLES, ".gz") or path.parent != Path():
        suggestion = did_you_mean(path.name, _neighbours(path), key=lambda name: Path(name).stem)
        raise UserError(f"No such file or directory: {data}{suggestion}")
    if data not in (names := dataset_names()):
        raise UserError(_neither(data, names))


def _neighbours(path: Path) -> list[str]:
    """The names of what lies beside the place."""
    return os.listdir(path.parent) if path.parent.is_dir() else []


def dataset_names() -> list[str]:
    """The names that `data.load_dataset` knows; importing it takes seconds."""
    try:
        return sorted({*bundled_files(), *packed_files(None)})
    except ArgumentError as error:
        raise UserError(str(error)) from error


def _neither(data: str, names: Sequence[str], what: str = "") -> str:
    """The sentence on a DATA that is no file of a known kind and no data set."""
    return (
        f"DATA must be a file ({', '.join((*FILES, *TABLES))}), a folder of tables or one of the data sets "
        f"{', '.join(names)}, got {what}{data!r}{did_you_mean(data, names)}"
    )


def load(data: str, reading: Reading, default: Half, columns: Columns) -> Labelled:
    """The half of DATA to work with."""
    from seq2tens.data import Labelled

    halves = load_all(data, reading, columns)
    if isinstance(halves, Labelled):
        if reading.split is not None:
            raise UserError(f"`--split` is for data that has two halves, but {data} has one")
        return halves
    half = reading.split or default
    chosen = halves.train if half == "train" else halves.test
    if len(chosen) == 0:
        raise UserError(f"the half `{half}` of {data} must hold at least one sequence, got none")
    return chosen


def load_all(data: str, reading: Reading, columns: Columns) -> Labelled | Split:
    """DATA with both halves, if it has two."""
    from seq2tens.data import load_dataset, read
    from seq2tens.data.readers import suffix_of

    with refusing(OSError, ValueError, ImportError, **NAMES):
        path = Path(data)
        is_file = _is_file(path)
        if is_file and (path.is_dir() or suffix_of(path) in TABLES):
            return _read_table(path, columns, reading.written)
        if reading.named or reading.written:
            raise UserError(f"columns have names in {', '.join(TABLES)} files only, not in {data}")
        return read(path) if is_file else load_dataset(data)


def _read_table(path: Path, columns: Columns, written: dict[str, str]) -> Labelled | Split:
    from seq2tens.data import Labelled, ReadError, read

    try:
        table = read(path, columns, **written)
    except ReadError as error:
        raise ReadError(_with_option(str(error), columns)) from error
    if isinstance(table, Labelled):
        for text in table.notes:
            note(text)
        if columns.channels is None:
            _note_channels(table)
    return table


def _with_option(sentence: str, columns: Columns) -> str:
    """What a reader says of a column that is not there, with the option that names another."""
    if (absent := NO_COLUMN.search(sentence)) is None:
        return sentence
    name = absent["name"]
    roles = {columns.id: "--id-column", columns.time: "--time-column", columns.label: "--label-column"}
    option_name = roles.get(name, "--channel-columns")
    suggestion = did_you_mean(name, absent["known"].split(", "))
    meant = suggestion.replace("did you mean '", f"did you mean `{option_name} ").replace("'?", "`?")
    return ADVICE.sub("", sentence) + (meant or f"; `{option_name}` names another")


def _note_channels(table: Labelled) -> None:
    """What nobody has chosen is told."""
    index = f", not {listed([repr(name) for name in table.index_columns])}" if table.index_columns else ""
    note(f"channels are {listed(table.channels or ())}{index}; `--channel-columns` names others")


def listed(names: Sequence[object]) -> str:
    """The first of them; there may be thousands."""
    shown = ", ".join(map(str, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown}, … ({len(names)} in all)"


def _is_file(path: Path) -> bool:
    """Whether DATA is meant as a file; a name that is neither is explained here."""
    from seq2tens.data import available_datasets
    from seq2tens.data.readers import HINTS, suffix_of, tables_in

    if suffix_of(path) in (*FILES, *TABLES) or (path.is_dir() and tables_in(path)):
        return True
    names = available_datasets()
    if str(path) in names:
        return False
    what = "the folder " if path.is_dir() else "the file " if path.exists() else ""
    hint = "; save the sheet as .csv" if suffix_of(path) in HINTS else ""
    raise UserError(_neither(str(path), names, what) + hint)


def described(labelled: Labelled) -> str:
    """How much there is, in a few words."""
    sequences = labelled.sequences
    low, high = int(sequences.lengths.min()), int(sequences.lengths.max())
    steps = f"{low} to {high}" if low < high else str(high)
    return f"{len(sequences)} sequences of {steps} steps, {sequences.n_channels} channels"


def without_times(sequences: Sequences, wanted: bool) -> Sequences:
    """Leave out times that a model was not trained with."""
    from seq2tens.data import Sequences

    if wanted or sequences.times is None:
        return sequences
    typer.echo("the model was trained without times, so those of DATA are not used")
    return Sequences(sequences.values, sequences.offsets, static=sequences.static)
