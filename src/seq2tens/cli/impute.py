"""`seq2tens impute`."""

from __future__ import annotations

import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli._stopping import trainable
from seq2tens.cli.fit import BatchSize, Device, Progress, Seed, Settings

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Columns, Labelled, Sequences

# Rows of a table that are turned into text at a time.
ROWS = 10_000

Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where to write the table (.csv, .parquet; - is stdout, as .csv).",
        show_default=False,
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="gp-vae, hi-vae, vae, mean, forward, linear, brits or saits."
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option("--encoder", metavar="conv|bls2t", help="The encoder of gp-vae. [default: conv]"),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", metavar="N", help="Write so many completed copies, drawn at random."),
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval", metavar="P", help="Write also where each missing value lies with this probability."
    ),
]
Epochs = Annotated[
    int | None, typer.Option("--epochs", metavar="N", help="At most so many epochs. [default: the model's]")
]
LearningRate = Annotated[
    float | None,
    typer.Option("--learning-rate", metavar="X", help="The highest rate. [default: the model's]"),
]


def impute(
    data: _data.DataArgument,
    out: Out,
    model: Model = "gp-vae",
    encoder: Encoder = None,
    samples: Samples = None,
    interval: Interval = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = None,
    progress: Progress = "auto",
    force: _files.Force = False,
    split: _data.SplitOption = None,
    id_column: _data.IdOption = None,
    time_column: _data.TimeOption = None,
    label_column: _data.LabelOption = None,
    channel_columns: _data.ChannelsOption = None,
) -> None:
    """Fill the missing values of DATA.

    The model is trained on DATA itself; where it has two halves, on the training half, and the one that
    --split names is filled (default: the training half). The result is a long table with a row per step: id,
    time, the channels, and the label if there is one. Observed values are written as they were read, with all
    their digits.

    With --samples there is a column `sample` with the number of the copy, and with --interval the columns
    CHANNEL_low and CHANNEL_high. brits and saits need `pip install 'seq2tens[baselines]'`.

    Examples:

    \b
      seq2tens impute recordings.csv --out filled.csv
      seq2tens impute recordings.csv --encoder bls2t --interval 0.9 --out filled.parquet
      seq2tens impute recordings.csv --samples 20 --seed 1 --out draws.csv
      seq2tens impute recordings.csv --model linear --out filled.csv
    """
    from seq2tens.estimators import IMPUTERS

    result = _files.output(out, "--out", _data.TABLES, force=force)
    _check_results(samples, interval)
    options = {
        "encoder": encoder,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "random_state": seed,
        "device": device,
        "progress": progress,
    }
    imputer = _models.make(model, options, settings or (), IMPUTERS)
    reading = _data.Reading(split, id_column, time_column, label_column, channel_columns)
    columns = reading.columns(label_optional=True)
    chosen = _data.load(data, reading, "train", columns)
    train = chosen if split != "test" else _data.load(data, replace(reading, split="train"), "train", columns)
    names = {**_models.option_names(imputer, options), "kind": "--encoder", "X": "DATA"}
    _train(imputer, train, names)
    with refusing(**names):
        table = _table(imputer, chosen, columns, samples, interval, seed)
    _write(table, result)
    result.tell()


def _check_results(samples: int | None, interval: float | None) -> None:
    """Refuse what cannot be written before hours of training."""
    if samples is not None and interval is not None:
        raise UserError(
            "`--samples` and `--interval` make different tables, so only one of them can be given"
        )
    if samples is not None and samples < 1:
        raise UserError(f"`--samples` must be at least 1, got {samples}")
    if interval is not None and not 0 < interval < 1:
        raise UserError(f"`--interval` must lie in (0, 1), got {interval}")


def _train(imputer: Any, train: Labelled, names: dict[str, str]) -> None:
    import numpy as np

    from seq2tens.training import NonFiniteLoss

    values = train.sequences.values
    missing = int(np.isnan(values).sum())
    typer.echo(f"training on {_data.described(train)}, {missing} of {values.size} values missing")
    begin = time.perf_counter()
    with (
        trainable(imputer, lambda: "nothing is written"),
        refusing(NonFiniteLoss, OSError, ImportError, **names),
    ):
        imputer.fit(train.sequences)
    typer.echo(f"trained in {time.perf_counter() - begin:.1f} s")


def _table(
    imputer: Any,
    found: Labelled,
    columns: Columns,
    samples: int | None,
    interval: float | None,
    seed: int,
) -> dict[str, np.ndarray]:
    """The columns of the result, each an array with an entry per row."""
    import numpy as np

    sequences, channels = found.sequences, _channel_names(found)
    copies = [imputer.transform(sequences)] if samples is None else imputer.sample(sequences, samples, seed)
    described = _described_steps(found, columns)
    parts = [(name, np.tile(column, len(copies))) for name, column in described]
    label = parts.pop() if found.labels is not None else None
    if samples is not None:
        parts.append(("sample", np.repeat(np.arange(samples), len(sequences.values))))
    values = np.concatenate([copy.values for copy in copies])
    parts += zip(channels, values.T, strict=True)
    if interval is not None:
        parts += _interval_columns(imputer.predict_interval(sequences, interval), channels)
    return _distinct([*parts, *([] if label is None else [label])])


def _described_steps(found: Labelled, columns: Columns) -> list[tuple[str, np.ndarray]]:
    """Id and time of each step, and last the label, if there is one."""
    import numpy as np

    sequences = found.sequences
    lengths = sequences.lengths
    ids = np.arange(len(found)) if found.ids is None else found.ids
    steps = np.arange(len(sequences.values)) - np.repeat(sequences.offsets[:-1], lengths)
    times = steps if sequences.times is None else np.asarray(sequences.times)
    parts = [(columns.id, np.repeat(ids, lengths)), (columns.time, times)]
    if found.labels is not None:
        parts.append((columns.label or "label", np.repeat(found.labels, lengths)))
    return parts


def _channel_names(found: Labelled) -> tuple[str, ...]:
    return found.channels or tuple(f"channel_{i}" for i in range(found.sequences.n_channels))


def _interval_columns(
    ends: tuple[Sequences, Sequences], channels: tuple[str, ...]
) -> list[tuple[str, np.ndarray]]:
    low, high = (end.values for end in ends)
    return [
        (f"{name}_{which}", end[:, i])
        for i, name in enumerate(channels)
        for which, end in (("low", low), ("high", high))
    ]


def _distinct(parts: list[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    table = dict(parts)
    if len(table) < len(parts):
        names = [name for name, _ in parts]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(f"the table would have two columns {twice!r}; DATA must name its own differently")
    return table


def _write(table: dict[str, np.ndarray], result: _files.Output) -> None:
    with result.replacing() as file:
        if result.path.suffix.lower() == ".parquet":
            _write_parquet(table, file)
        else:
            _write_csv(table, file)


def _write_csv(table: dict[str, np.ndarray], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        rows = len(next(iter(table.values())))
        for start in range(0, rows, ROWS):
            cells = [column[start : start + ROWS].tolist() for column in table.values()]
            writer.writerows(zip(*cells, strict=True))


def _write_parquet(table: dict[str, np.ndarray], path: Path) -> None:
    from seq2tens.data._optional import optional

    with refusing(ImportError):
        arrow = optional("pyarrow", "writing .parquet files")
        parquet = optional("pyarrow.parquet", "writing .parquet files")
    parquet.write_table(arrow.table({name: column.tolist() for name, column in table.items()}), path)
