"""`seq2tens impute`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import choice, count, option
from seq2tens.cli._shared import tables
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli._stopping import training
from seq2tens.cli.fit import BatchSize, Device, Progress, Seed, Settings

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Columns, Labelled, Sequences

Out = Annotated[
    Path,
    option("FILE", "Where to write the table (.csv, .parquet; - is stdout, as .csv).", show_default=False),
]
Model = Annotated[str, option("NAME", "gp-vae, hi-vae, vae, mean, forward, linear, brits or saits.")]
Encoder = Annotated[str | None, choice("conv|bls2t", "The encoder of gp-vae. [default: conv]")]
Samples = Annotated[int | None, count("N", "Write so many completed copies, drawn at random.")]
Interval = Annotated[
    float | None, option("P", "Write also where each missing value lies with this probability.")
]
Epochs = Annotated[int | None, count("N", "At most so many epochs. [default: the model's]")]
LearningRate = Annotated[float | None, option("X", "The highest rate. [default: the model's]")]


@dataclass(frozen=True)
class ImputeOptions:
    """What to write, and how to train."""

    encoder: Encoder = None
    samples: Samples = None
    interval: Interval = None
    epochs: Epochs = None
    batch_size: BatchSize = None
    learning_rate: LearningRate = None
    settings: Settings = None
    random_state: Seed = 0
    device: Device = None
    progress: Progress = "auto"
    force: _files.Force = False


def impute(
    data: _data.DataArgument,
    out: Out,
    *,
    model: Model = "gp-vae",
    options: ImputeOptions,
    reading: _data.Reading,
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
    result = _files.output(out, "--out", (".csv", ".parquet"), force=options.force)
    _check_results(options.samples, options.interval)
    arguments = _models.arguments(options, leaving=("samples", "interval", "settings", "force"))
    model = _models.check(model, "imputation", arguments, options.settings or ())
    _data.check(data)
    imputer = _models.make(model, "imputation", arguments, options.settings or ())
    columns = reading.columns(label_optional=True)
    chosen = train = _data.load(data, reading, "train", columns)
    if reading.split == "test":
        train = _data.load(data, replace(reading, split="train"), "train", columns)
    names = {**_models.option_names(imputer, arguments), "kind": "--encoder", "X": "DATA"}
    values = train.sequences.values
    missing = int((values != values).sum())  # as many as are NaN
    typer.echo(f"training on {_data.described(train)}, {missing} of {values.size} values missing")
    with training(imputer, lambda: "nothing is written", **names):
        imputer.fit(train.sequences)
    with refusing(**names):
        table = _table(imputer, chosen, columns, options)
    tables.write(table, result)


def _check_results(samples: int | None, interval: float | None) -> None:
    """Refuse what cannot be written before hours of training."""
    if samples is not None and interval is not None:
        raise UserError(
            "`--samples` and `--interval` make different tables, so only one of them can be given"
        )
    if interval is not None and not 0 < interval < 1:
        raise UserError(f"`--interval` must lie in (0, 1), got {interval}")


def _table(
    imputer: Any, labelled: Labelled, columns: Columns, options: ImputeOptions
) -> dict[str, np.ndarray]:
    """The columns of the result, each an array with an entry per row."""
    import numpy as np

    sequences, channels, samples = labelled.sequences, _channel_names(labelled), options.samples
    draws = () if samples is None else imputer.sample(sequences, samples, options.random_state)
    copies = draws or [imputer.transform(sequences)]
    described = _described_steps(labelled, columns)
    parts = [(name, np.tile(column, len(copies))) for name, column in described]
    label = parts.pop() if labelled.labels is not None else None
    if samples is not None:
        parts.append(("sample", np.repeat(np.arange(samples), len(sequences.values))))
    values = np.concatenate([copy.values for copy in copies])
    parts += zip(channels, values.T, strict=True)
    if options.interval is not None:
        parts += _interval_columns(imputer.predict_interval(sequences, options.interval), channels)
    return _distinct([*parts, *([] if label is None else [label])])


def _described_steps(labelled: Labelled, columns: Columns) -> list[tuple[str, np.ndarray]]:
    """Id and time of each step, and last the label, if there is one."""
    import numpy as np

    sequences = labelled.sequences
    lengths = sequences.lengths
    ids = np.arange(len(labelled)) if labelled.ids is None else labelled.ids
    times = sequences.positions if sequences.times is None else sequences.times
    parts = [(columns.id or "id", np.repeat(ids, lengths)), (columns.time or "time", times)]
    if labelled.labels is not None:
        parts.append((columns.label or "label", np.repeat(labelled.labels, lengths)))
    return parts


def _channel_names(labelled: Labelled) -> tuple[str, ...]:
    return labelled.channels or tuple(f"channel_{i}" for i in range(labelled.sequences.n_channels))


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
