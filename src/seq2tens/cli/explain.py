"""`seq2tens explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens._errors import did_you_mean
from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import option
from seq2tens.cli._shell import UserError, refusing

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Labelled, Sequences
    from seq2tens.explaining import Explanation, FeatureExplanation, VariableAt

Id = Annotated[
    str,
    option("ID", "The sequence: its id in a long table, else its number from 0.", "--id", show_default=False),
]
Out = Annotated[Path, option("DIR", "Where to write the table and the figure.", show_default=False)]
Target = Annotated[
    str | None, option("CLASS", "The class to explain. [default: the second of two, else the predicted one]")
]
Unit = Annotated[str, option("TEXT", "Label of the time axis.")]
OUTPUT_FILES = ("explanation.csv", "explanation.png")
# How many entries of each list are printed.
SHOWN = 5


@dataclass(frozen=True)
class ExplainOptions:
    """Options of the explanation."""

    target: Target = None
    unit: Unit = "time"
    force: _files.Force = False


def explain(
    folder: _models.FolderArgument,
    data: _data.DataArgument,
    key: Id,
    out: Out,
    options: ExplainOptions,
    reading: _data.Reading,
) -> None:
    """Explain a saved model's prediction for one sequence.

    For networks: how much each variable at each time, and each ordered pair of times, contributes to the
    logit of the class (against the mean of the others), relative to a baseline in which every variable is at
    its training mean. For random-ls2t: how much each feature contributes to the score of the class or to the
    predicted number, with its channels and steps. Prints the largest contributions and writes
    explanation.csv, with all of them (for features: the largest), and explanation.png. Ids are those of a
    long table, else 0, 1, … If DATA has a training and a test set, the test set is used.

    Example:

    \b
      seq2tens explain model stays.csv --id 132539 --out why --unit hours
    """
    _files.check_folder(out, "--out")
    _files.check_new([out / name for name in OUTPUT_FILES], "--out", force=options.force)
    _data.check(data)
    model, labelled = _models.load_with_data(folder, data, reading, label_optional=True)
    chosen = labelled[_row(labelled, key, data)]
    with refusing(TypeError, x="DATA", X="DATA", target="--target", model="DIR"):
        explanation = _explained(model, chosen.sequences, options.target, labelled.channels)
    table, picture = _files.outputs(out, OUTPUT_FILES, "--out", force=options.force)
    unit = {} if _is_linear(model) else {"unit": options.unit}
    with refusing(OSError):
        explanation.to_csv(table.path)
        explanation.plot(picture.path, **unit)
    (_print_features if _is_linear(model) else _print)(explanation)
    typer.echo(f"saved explanation.csv and explanation.png in {out}")


def _is_linear(model: Any) -> bool:
    """Whether the model is linear in random features."""
    return hasattr(model, "ridge_")


def _explained(model: Any, sequence: Sequences, target: str | None, names: tuple[str, ...] | None) -> Any:
    from seq2tens import explaining

    explain_model = explaining.explain_features if _is_linear(model) else explaining.explain
    if not _models.is_classifier(model) and target is not None:
        raise UserError(f"`--target` is for classes, but the model predicts numbers, got {target!r}")
    chosen = None if target is None else _class(target, model.classes_.tolist())
    return explain_model(model, sequence, target=chosen, names=names)


def _row(labelled: Labelled, key: str, data: str) -> int:
    """The index of the sequence with this id."""
    ids = list(map(str, range(len(labelled)) if labelled.ids is None else labelled.ids.tolist()))
    if key not in ids:
        examples = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
        suggestion = did_you_mean(key, ids)
        raise UserError(
            f"`--id` must be one of the {len(ids)} ids of {data} ({examples}), got {key!r}{suggestion}"
        )
    return ids.index(key)


def _class(target: str | None, classes: list[Any]) -> Any:
    """The class with this name, in its own type; an unknown name is left for the library to refuse."""
    return {str(name): name for name in classes}.get(str(target), target)


def _described(at: VariableAt) -> str:
    if at.value != at.value:
        return f"{at.variable} at {at.time:g}, not measured so far"
    origin = "measured" if at.measured else "carried forward"
    return f"{at.variable} = {at.value:g} at {at.time:g}, {origin}"


def _print_features(explanation: FeatureExplanation) -> None:
    typer.echo(f"target     {explanation.target}")
    typer.echo(f"output     {explanation.output:.4f}")
    typer.echo(f"baseline   {explanation.baseline_output:.4f}")
    typer.echo("features")
    for row in explanation.features[:SHOWN]:
        typer.echo(f"  {row.contribution:+.4f}  {row}")
    others = explanation.rest + sum(row.contribution for row in explanation.features[SHOWN:])
    typer.echo(f"  {others:+.4f}  all others")


def _print(explanation: Explanation) -> None:
    typer.echo(f"class      {explanation.target}")
    typer.echo(f"output     {explanation.output:.4f}")
    typer.echo(f"baseline   {explanation.baseline_output:.4f}")
    typer.echo("variables")
    for name, total in list(explanation.totals.items())[:SHOWN]:
        typer.echo(f"  {total:+.4f}  {name}")
    typer.echo("variables at times")
    for at in explanation.top_variables(SHOWN):
        typer.echo(f"  {at.contribution:+.4f}  {_described(at)}")
    pairs = explanation.top_pairs(SHOWN)
    typer.echo("pairs of times" if pairs else "no pairs of times: there is one step")
    for pair in pairs:
        typer.echo(f"  {pair.contribution:+.4f}  {pair.first:g} before {pair.second:g}")
