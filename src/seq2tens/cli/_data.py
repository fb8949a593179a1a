"""The argument DATA, a file or the name of a data set, and the options for reading it."""

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
# The shell's names of the arguments of `read`.
NAMES = {
    "split": "--split",
    "separator": "--separator",
    "decimal": "--decimal",
    "unit": "--time-unit",
    "channels": "--channel-columns",
    "categories": "--category-columns",
}
FILES = (".ts", ".arff", ".mat", ".npz")
# A reader's message about a missing column, and its advice, which is for Python.
NO_COLUMN = re.compile(r"must have a column `(?P<name>.*?)`, found (?P<known>[^;]*)")
ADVICE = re.compile(r"; `\w+=None` .*$")
# Longer lists of names are cut off after this many.
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
    str | None, choice("train|test", "Which part of DATA to use, if it has two.", show_default=False)
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
    """Options for reading a long table; None if the user did not give them."""

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
        """The options about columns that the user gave, as arguments of `Columns`."""
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
        """The options about the text of a `.csv` file that the user gave, as arguments of `read`."""
        marks = {"separator": self.separator, "decimal": self.decimal}
        return {key: mark for key, mark in marks.items() if mark is not None}

    def columns(self, known: Columns | None = None, *, label_optional: bool = False) -> Columns:
        """The columns that the user named; the others are those of `known`, or the defaults."""
        from seq2tens.data import Columns

        # A label column that the user named must exist.
        optional = label_optional and self.label_column is None
        with refusing(**NAMES):
            columns = replace(known or Columns(), label_optional=optional, **self.named)
        if columns.encoding is None or columns.channels is None:
            return columns
        return replace(columns, encoding=columns.encoding.renamed(columns.channels))


@dataclass(frozen=True)
class Reading(TableReading):
    """Options for reading DATA, including which half."""

    split: SplitOption = None


def check(data: str) -> None:
    """Refuse DATA that does not exist, before anything heavy is imported."""
    path = Path(data)
    if path.exists():
        return
    if path.suffix.lower() in (*FILES, *TABLES, ".gz") or path.parent != Path():
        suggestion = did_you_mean(path.name, _neighbors(path), key=lambda name: Path(name).stem)
        raise UserError(f"No such file or directory: {data}{suggestion}")
    if data not in (names := dataset_names()):
        raise UserError(_unknown_data(data, names))


def _neighbors(path: Path) -> list[str]:
    """The names of the files in the same folder."""
    return os.listdir(path.parent) if path.parent.is_dir() else []


def dataset_names() -> list[str]:
    """The names that `data.load_dataset` knows, without importing it, which takes seconds."""
    try:
        return sorted({*bundled_files(), *packed_files(None)})
    except ArgumentError as error:
        raise UserError(str(error)) from error


def _unknown_data(data: str, names: Sequence[str], kind: str = "") -> str:
    """The error message for DATA that is neither a supported file nor a data set."""
    return (
        f"DATA must be a file ({', '.join((*FILES, *TABLES))}), a folder of tables or one of the data sets "
        f"{', '.join(names)}, got {kind}{data!r}{did_you_mean(data, names)}"
    )


def load(data: str, reading: Reading, default: Half, columns: Columns) -> Labelled:
    """Load the half of DATA that `--split` selects, else the default one."""
    from seq2tens.data import Labelled

    halves = load_all(data, reading, columns)
    if isinstance(halves, Labelled):
        if reading.split is not None:
            raise UserError(f"`--split` is for data with a training and a test set, but {data} has one part")
        return halves
    half = reading.split or default
    chosen = halves.train if half == "train" else halves.test
    if len(chosen) == 0:
        raise UserError(f"the {half} set of {data} must have at least one sequence, got none")
    return chosen


def load_all(data: str, reading: Reading, columns: Columns) -> Labelled | Split:
    """Load all of DATA: both halves, if it has two."""
    from seq2tens.data import load_dataset, read
    from seq2tens.data.readers import suffix_of

    with refusing(OSError, ValueError, ImportError, **NAMES):
        path = Path(data)
        is_file = _is_file(path)
        if is_file and (path.is_dir() or suffix_of(path) in TABLES):
            return _read_table(path, columns, reading.written)
        if reading.named or reading.written:
            raise UserError(f"options of tables are for {', '.join(TABLES)} files only, got {data}")
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
    """Add the option that names another column to a reader's message about a missing one."""
    if (absent := NO_COLUMN.search(sentence)) is None:
        return sentence
    name = absent["name"]
    roles = {columns.id: "--id-column", columns.time: "--time-column", columns.label: "--label-column"}
    option_name = roles.get(name, "--channel-columns")
    suggestion = did_you_mean(name, absent["known"].split(", "))
    advice = suggestion.replace("did you mean '", f"did you mean `{option_name} ").replace("'?", "`?")
    return ADVICE.sub("", sentence) + (advice or f"; `{option_name}` names another")


def _note_channels(table: Labelled) -> None:
    """Say which channels are used, since the user has not named them."""
    index = f", not {listed([repr(name) for name in table.index_columns])}" if table.index_columns else ""
    note(f"channels are {listed(table.channels or ())}{index}; `--channel-columns` names others")


def listed(names: Sequence[object]) -> str:
    """Join names with commas; only the first few, as there may be thousands."""
    shown = ", ".join(map(str, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown}, … ({len(names)} in all)"


def _is_file(path: Path) -> bool:
    """Whether DATA is a file or a folder, not a data set; raise an error if it is neither."""
    from seq2tens.data import available_datasets
    from seq2tens.data.readers import HINTS, suffix_of, tables_in

    if suffix_of(path) in (*FILES, *TABLES) or (path.is_dir() and tables_in(path)):
        return True
    names = available_datasets()
    if str(path) in names:
        return False
    kind = "the folder " if path.is_dir() else "the file " if path.exists() else ""
    hint = "; save the sheet as .csv" if suffix_of(path) in HINTS else ""
    raise UserError(_unknown_data(str(path), names, kind) + hint)


def described(labelled: Labelled) -> str:
    """Summarise the size of the data in a few words."""
    sequences = labelled.sequences
    low, high = int(sequences.lengths.min()), int(sequences.lengths.max())
    steps = f"{low} to {high} steps" if low < high else counted(high, "step")
    channels = counted(sequences.n_channels, "channel")
    return f"{counted(len(sequences), 'sequence')} of {steps}, {channels}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the singular or the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def without_times(sequences: Sequences, has_clock: bool) -> Sequences:
    """Drop the times if the model has no clock, that is, if it was trained without them."""
    from seq2tens.data import Sequences

    if has_clock or sequences.times is None:
        return sequences
    typer.echo("the model was trained without times, so those of DATA are not used")
    return Sequences(sequences.values, sequences.offsets, static=sequences.static)
