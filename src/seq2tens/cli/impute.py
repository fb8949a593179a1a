"""`seq2tens impute`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import choice, count, option
from seq2tens.cli._shared import catalogue, tables
from seq2tens.cli._shell import UserError, note, refusing
from seq2tens.cli._stopping import training
from seq2tens.cli.fit import Device, Progress, Seed, Settings

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np
    from matplotlib.figure import Figure

    from seq2tens.data import Columns, Labelled, Sequences

Out = Annotated[
    Path,
    option("FILE", "Where to write the table (.csv, .parquet; - is stdout, as .csv).", show_default=False),
]
Model = Annotated[
    str,
    option(
        "NAME",
        "auto, ls2t, gp-vae, hi-vae, vae, mean, forward, linear, or brits, saits, timesnet, imputeformer, "
        "helix and csdi of PyPOTS.",
    ),
]
Encoder = Annotated[str | None, choice("conv|bls2t", "The encoder of gp-vae. [default: conv]")]
Samples = Annotated[int | None, count("N", "Write this many completed copies, drawn at random.")]
Interval = Annotated[
    float | None,
    option("P", "Also write intervals that contain each missing value with this probability."),
]
Picture = Annotated[
    Path | None, option("FILE", "Plot a filled sequence with its intervals (.png, .svg, .pdf).")
]
Report = Annotated[
    Path | None, option("FILE", "Write errors on hidden values, by channel and gap length (.csv, .parquet).")
]
Epochs = Annotated[int | None, count("N", "Maximum number of epochs. [default: the model's]")]
BatchSize = Annotated[int | None, count("N", "Sequences per step. [default: the model's]")]
LearningRate = Annotated[float | None, option("X", "Maximum learning rate. [default: the model's]")]
# Where to write the table, the figure and the report.
OutputFiles = tuple[_files.Output, _files.Output | None, _files.Output | None]
# Options that are not arguments of a model.
NOT_ARGUMENTS = ("samples", "interval", "picture", "report", "settings", "force")


@dataclass(frozen=True)
class ImputeOptions:
    """Options of the training and the outputs."""

    encoder: Encoder = None
    samples: Samples = None
    interval: Interval = None
    picture: Picture = None
    report: Report = None
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
    model: Model = catalogue.AUTO,
    options: ImputeOptions,
    reading: _data.Reading,
) -> None:
    """Fill the missing values of DATA.

    The model is trained on DATA itself; if DATA has a training and a test set, always on the training set.
    --split selects the set to fill (default: the training set). The result is a long table with one row per
    step: id, time, the channels, and the label if there is one. Observed values are written exactly as they
    were read. --samples adds a column `sample`, the number of the copy; --interval adds the columns
    CHANNEL_low and CHANNEL_high.

    --model auto trains ls2t, and uses linear interpolation (linear) instead if that has a smaller error on
    held-out entries. --report hides a tenth of the observed values, trains again without them, and writes a
    row for each channel and gap length. The models of PyPOTS need `pip install 'seq2tens[baselines]'`.

    Examples:

    \b
      seq2tens impute recordings.csv --out filled.csv
      seq2tens impute recordings.csv --interval 0.9 --picture filled.png --out filled.parquet
      seq2tens impute recordings.csv --samples 20 --seed 1 --out draws.csv
      seq2tens impute recordings.csv --model linear --report errors.csv --out filled.csv
      seq2tens impute recordings.csv --model gp-vae --encoder bls2t --out filled.csv
    """
    result, picture, report = _output_files(out, options)
    _check_results(options.samples, options.interval)
    arguments = _models.arguments(options, excluded=NOT_ARGUMENTS)
    name = _models.check(model, "imputation", arguments, options.settings or ())
    _data.check(data)
    imputer = _models.make(name, "imputation", arguments, options.settings or ())
    columns = reading.columns(label_optional=True)
    chosen = train = _data.load(data, reading, "train", columns)
    if reading.split == "test":
        train = _data.load(data, replace(reading, split="train"), "train", columns)
    names = {**_models.option_names(imputer, arguments), "kind": "--encoder", "X": "DATA"}
    values = train.sequences.values
    missing = int((values != values).sum())  # the number of NaN
    typer.echo(f"training on {_data.described(train)}, {missing} of {values.size} values missing")
    with training(imputer, lambda: "nothing is written", **names):
        imputer.fit(train.sequences)
    if model == catalogue.AUTO:
        imputer = _choose_imputer(imputer, train.sequences)
    with refusing(**names):
        table = _table(imputer, chosen, columns, options)
    tables.write(table, result)
    if picture is not None:
        picture.draw(_drawn(imputer, chosen, options.interval or 0.9))
    if report is not None:
        with training(imputer, lambda: "the table is written, the report is not", **names):
            errors = _errors(imputer, train)
        tables.write(errors, report)


def _output_files(out: Path, options: ImputeOptions) -> OutputFiles:
    """Check where to write the table, the figure and the report."""
    suffixes = (".csv", ".parquet")
    result = _files.output(out, "--out", suffixes, force=options.force)
    picture = _files.picture(options.picture, "--picture", force=options.force)
    if options.report is None:
        return result, picture, None
    return result, picture, _files.output(options.report, "--report", suffixes, force=options.force)


def _choose_imputer(imputer: Any, train: Sequences) -> Any:
    """The imputer, or linear interpolation if that has a smaller error on held-out entries."""
    from seq2tens.estimators import LinearImputer

    errors = imputer.held_out_errors_
    if not errors:
        note("no value could be hidden to compare models; linear is used")
        return LinearImputer().fit(train)
    best = min(errors, key=errors.__getitem__)
    listed = ", ".join(f"{name} {error:.3f}" for name, error in errors.items())
    note(f"{best} is used; mean absolute errors on held-out entries, in standard deviations: {listed}")
    return imputer if best == catalogue.AUTO_TRAINS else LinearImputer().fit(train)


def _errors(imputer: Any, labelled: Labelled) -> dict[str, np.ndarray]:
    """Errors on hidden values, of a model that is trained without them."""
    import numpy as np
    from sklearn.base import clone

    from seq2tens.data import held_out
    from seq2tens.estimators import imputation_report

    values, _ = held_out(labelled.sequences.values, 0.1, np.random.default_rng(0))
    masked = labelled.sequences.with_values(values)
    report = imputation_report(
        clone(imputer).fit(masked), masked, labelled.sequences, channels=_channel_names(labelled)
    )
    return report.columns


def _drawn(imputer: Any, labelled: Labelled, coverage: float) -> Figure:
    """Plot the first sequence that has both missing and observed values, else the first sequence."""
    import numpy as np

    from seq2tens import plots

    sequences = labelled.sequences
    missing = np.array([0 < np.isnan(x).mean() < 1 for x in sequences])
    row = int(np.argmax(missing))
    one = sequences[row : row + 1]
    name = row if labelled.ids is None else labelled.ids[row]
    low, high = imputer.predict_interval(one, coverage)
    return plots.imputation(
        one.values,
        imputer.transform(one).values,
        (low.values, high.values),
        times=one.times,
        channels=_channel_names(labelled),
        title=f"sequence {name}, intervals of {coverage:.0%}",
    )


def _check_results(samples: int | None, interval: float | None) -> None:
    """Refuse results that cannot be written, before hours of training."""
    if samples is not None and interval is not None:
        raise UserError("only one of `--samples` and `--interval` can be given, because their tables differ")
    if interval is not None and not 0 < interval < 1:
        raise UserError(f"`--interval` must lie in (0, 1), got {interval}")


def _table(
    imputer: Any, labelled: Labelled, columns: Columns, options: ImputeOptions
) -> dict[str, np.ndarray]:
    """The columns of the result, each an array with one entry per row."""
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
    """The columns with the id, the time and, if there is one, the label of each step."""
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
    bounds: tuple[Sequences, Sequences], channels: tuple[str, ...]
) -> list[tuple[str, np.ndarray]]:
    low, high = (bound.values for bound in bounds)
    return [
        (f"{name}_{bound_name}", bound[:, i])
        for i, name in enumerate(channels)
        for bound_name, bound in (("low", low), ("high", high))
    ]


def _distinct(parts: list[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    table = dict(parts)
    if len(table) < len(parts):
        names = [name for name, _ in parts]
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(f"the table would have two columns {repeated!r}; rename the column of DATA")
    return table
