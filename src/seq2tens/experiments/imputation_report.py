"""The section of a report about the imputation experiment; it reads results and never trains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seq2tens.experiments import imputation_figures as figures
from seq2tens.experiments import tsc_costs
from seq2tens.experiments.formats import NONE, NOT_RUN, Cell, Table, count, signed
from seq2tens.experiments.imputation import EXPERIMENT, WATCHED
from seq2tens.experiments.imputation_figures import Line
from seq2tens.experiments.imputation_kept import Kept, places, read
from seq2tens.experiments.imputation_models import MODELS, SETTINGS
from seq2tens.experiments.imputation_published import MEASURES, SCORES
from seq2tens.experiments.imputation_summary import Runs, joined, label, longest, published
from seq2tens.experiments.imputation_table import ImputationRow
from seq2tens.experiments.sections import Block, Part, Picture, Section

SETS = {"hmnist": "Healing MNIST", "sprites": "Sprites", "physionet": "Physionet"}
TITLES = {
    "nll": "NLL",
    "mse": "MSE",
    "mse_probability": "MSE, not rounded",
    "auroc": "AUROC",
    "coverage": "in 90 % interval",
}
# Columns of a data set's table; those that the paper has not are ours alone.
COLUMNS = {
    "hmnist": ("nll", "mse", "mse_probability", "auroc", "coverage"),
    "sprites": ("nll", "mse", "coverage"),
    "physionet": ("auroc",),
}
NOTES = {
    "hmnist": (
        "NLL and MSE are means over hidden pixels of the test part. For the MSE of networks, probabilities "
        "are rounded to 0 or 1, as published. The interval of 90 % of a pixel is the smallest set of values "
        "with that probability, so that more than 90 % may lie in it."
    ),
    "sprites": (
        "Colours lie between 0 and 1, and the published decoder has a Gaussian with variance 1: NLL is at "
        "least 0.919, and intervals are far too wide."
    ),
    "physionet": (
        "Nothing is known of what was not measured: imputed stays are judged by a logistic regression for "
        "death in hospital only, fitted to the first half of them and scored on the second."
    ),
}
# The paper's claim: with the layer it is better than without it.
CLAIM = ("gp-vae-bls2t", "gp-vae")


def section(rows: Sequence[ImputationRow], *, details: bool = True, folder: Path | None = None) -> Section:
    """All that finished cells say; without `details` only what goes into the documentation.

    `folder` is where the table is, with the curves and pictures of cells beside it.
    """
    runs = joined(rows)
    found = [name for name in SETTINGS if any(group.dataset == name for group in runs)]
    parts = [_overview(runs)]
    parts += [_of_set(name, runs, folder, details) for name in found]
    parts += [_costs(runs), _provenance(rows)]
    return Section(EXPERIMENT.name, "Imputation", tuple(parts))


def _overview(runs: Sequence[Runs]) -> Part:
    whole = sum(len(group.rows) for group in runs if group.whole)
    short = sum(len(group.rows) for group in runs if not group.whole)
    told = (
        f"{whole} runs are finished, {short} others were cut short by fewer epochs or training sequences "
        "than in the paper."
    )
    return Part("Overview", (told, *_claims(runs)))


def _claims(runs: Sequence[Runs]) -> list[str]:
    """GP-VAE with B-LS2T against the one without, wherever both were trained alike."""
    places = dict.fromkeys((g.dataset, g.epoch_limit, g.limit) for g in runs if g.model in CLAIM)
    texts = []
    for place in places:
        by_model = {g.model: g for g in runs if (g.dataset, g.epoch_limit, g.limit) == place}
        if all(model in by_model for model in CLAIM):
            texts.append(_claim(*(by_model[model] for model in CLAIM)))
    return texts


def _claim(ours: Runs, other: Runs) -> str:
    changes = []
    for name in MEASURES[ours.dataset]:
        ours_mean, other_mean = ours.mean(name), other.mean(name)
        scores = [published(label(model), ours.dataset, name) for model in CLAIM]
        assert ours_mean is not None
        assert other_mean is not None
        assert scores[0] is not None
        assert scores[1] is not None
        paper = f"in the paper {signed(scores[0].mean - scores[1].mean)}"
        changes.append(f"{TITLES[name]} {signed(ours_mean - other_mean)} ({paper})")
    return (
        f"{SETS[ours.dataset]}, {_extent(ours)}: GP-VAE (B-LS2T) less GP-VAE ({len(ours.rows)} and "
        f"{len(other.rows)} runs): {', '.join(changes)}. Less is better for NLL and MSE, more for AUROC."
    )


def _extent(group: Runs) -> str:
    """How much training."""
    few = f", {group.limit:,} training sequences" if group.limit else ""
    return f"{group.epoch_limit} epochs{few}"


def _of_set(dataset: str, runs: Sequence[Runs], folder: Path | None, details: bool) -> Part:
    own = [group for group in runs if group.dataset == dataset]
    blocks: list[Block] = [_scores(dataset, own)]
    if short := [group for group in own if not group.whole]:
        blocks.append(_short(dataset, short))
    if folder is not None:
        kept = [(group, places(folder, group.rows[0].key)) for group in longest(own, dataset)]
        blocks += _curve_table(dataset, kept)
        if details:
            blocks += [*_curve(dataset, kept), *_calibration(dataset, kept), *_frames(dataset, kept)]
    return Part(SETS[dataset], tuple(blocks))


def _scores(dataset: str, runs: Sequence[Runs]) -> Table:
    """Models, run or not, with the paper's numbers."""
    rows = []
    for name in _labels(dataset):
        own = [group for group in runs if group.label == name and group.whole]
        rows += [_score_row(group) for group in own] or [_not_run(name, dataset)]
    parts = [f"{group.rows[0].n_train:,} / {group.rows[0].n_test:,}" for group in runs if group.whole][:1]
    sizes = f" Sequences for training and test: {parts[0]}." if parts else ""
    notes = (
        "Mean of the runs ± their standard deviation; below it the paper's mean ± its standard deviation, "
        f"and ours less the paper's. {NOTES[dataset]}{sizes}"
    )
    header = ("model", "runs", "epochs", *(TITLES[name] for name in COLUMNS[dataset]))
    caption = f"{SETS[dataset]}, test part, beside the published numbers"
    return Table(f"{dataset}-scores", caption, header, tuple(rows), notes=(notes,))


def _labels(dataset: str) -> list[str]:
    ours = [model.label for model in MODELS.values()]
    return ours + [name for name in SCORES if name not in ours and dataset in SCORES[name]]


def _score_row(group: Runs) -> tuple[Cell, ...]:
    epochs = count(group.epoch_limit) if group.trained else Cell(NONE)
    scores = (_score(group, name) for name in COLUMNS[group.dataset])
    return (Cell(group.label), count(len(group.rows)), epochs, *scores)


def _score(group: Runs, measure: str, beside: bool = True) -> Cell:
    mean, spread = group.mean(measure), group.spread(measure)
    if mean is None:
        return Cell(NONE)
    text = f"{mean:.3f}" + ("" if spread is None else f" ± {spread:.3f}")
    paper = published(group.label, group.dataset, measure) if beside else None
    if paper is None:
        return Cell(text, mean)
    return Cell(text, mean, paper.mean, published_spread=paper.std)


def _not_run(name: str, dataset: str) -> tuple[Cell, ...]:
    scores = []
    for measure in COLUMNS[dataset]:
        paper = published(name, dataset, measure)
        absent = Cell(NONE) if paper is None else Cell(NOT_RUN, None, paper.mean, published_spread=paper.std)
        scores.append(absent)
    return (Cell(name), Cell("0", 0), Cell(NONE), *scores)


def _short(dataset: str, runs: Sequence[Runs]) -> Table:
    rows = [
        (
            Cell(group.label),
            count(len(group.rows)),
            count(group.epoch_limit),
            Cell(f"{group.rows[0].n_train:,}", group.rows[0].n_train),
            *(_score(group, name, beside=False) for name in COLUMNS[dataset]),
        )
        for group in runs
    ]
    header = ("model", "runs", "epochs", "training sequences", *(TITLES[name] for name in COLUMNS[dataset]))
    caption = f"{SETS[dataset]}: runs that were cut short, not to be compared with published numbers"
    return Table(f"{dataset}-short", caption, header, tuple(rows))


Files = Sequence[tuple[Runs, Kept]]


def _lines(kept: Files, column: str) -> list[Line]:
    found = [(group, read(files.curve)) for group, files in kept]
    return [Line(_name(group), curve["epoch"], curve[column]) for group, curve in found if column in curve]


def _name(group: Runs) -> str:
    return group.label if group.whole else f"{group.label}, {_extent(group)}"


def _curve_table(dataset: str, kept: Files) -> list[Block]:
    """The validation NLL epoch by epoch."""
    lines = _lines(kept, "validation_nll")
    if not lines:
        return []
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    epochs = sorted({epoch for of_line in values for epoch in of_line})
    rows = [(count(int(epoch)), *(_plain(of_line.get(epoch)) for of_line in values)) for epoch in epochs]
    caption = f"{SETS[dataset]}: NLL of hidden entries after each epoch"
    notes = (f"Of the first {WATCHED:,} validation sequences, first seed; nothing is chosen by it.",)
    header = ("epoch", *(line.label for line in lines))
    return [Table(f"{dataset}-curve-table", caption, header, tuple(rows), notes=notes)]


def _plain(value: float | None) -> Cell:
    return Cell(NONE) if value is None else Cell(f"{value:.3f}", value)


def _curve(dataset: str, kept: Files) -> list[Block]:
    for column, title in (
        ("validation_nll", "validation NLL"),
        ("train_loss", "training loss, minus the bound"),
    ):
        if lines := _lines(kept, column):
            caption = f"{SETS[dataset]}: {title} after each epoch, first seed of each model."
            return [Picture(f"{dataset}-curve", caption, figures.curves(lines, title))]
    return []


def _calibration(dataset: str, kept: Files) -> list[Block]:
    found = [(group, read(files.calibration)) for group, files in kept]
    lines = [Line(_name(group), points["predicted"], points["found"]) for group, points in found if points]
    if not lines:
        return []
    if SETTINGS[dataset].network.get("likelihood") == "bernoulli":
        axes = "predicted probability of a white pixel", "share of white pixels"
        told = "of hidden pixels with about the same predicted probability, how many are white"
    else:
        axes = "level of the interval", "share of entries in it"
        told = "how many hidden entries lie in their central interval of each level"
    caption = f"{SETS[dataset]}, calibration: {told}; on the dashed line if predictions are right."
    return [Picture(f"{dataset}-calibration", caption, figures.calibration(lines, *axes))]


def _frames(dataset: str, kept: Files) -> list[Block]:
    return [
        Picture(
            f"{dataset}-frames-{group.model}",
            f"{SETS[dataset]}, {_name(group)}: frames of test sequences. Missing entries are blue.",
            figures.frames(files.picture),
        )
        for group, files in kept
        if files.picture.exists()
    ]


def _costs(runs: Sequence[Runs]) -> Part:
    rows = [
        (
            Cell(SETS[group.dataset]),
            Cell(group.label),
            count(len(group.rows)),
            count(group.epoch_limit) if group.trained else Cell(NONE),
            _rounded(group.mean("epoch_seconds"), 1),
            _rounded(None if not group.trained else (group.mean("fit_seconds") or 0) / 60, 1),
            _rounded(group.mean("predict_seconds"), 1),
            _rounded(group.mean("parameters")),
            _rounded(max(row.peak_mib for row in group.rows)),
            count(max(row.threads for row in group.rows)),
        )
        for group in runs
    ]
    header = (
        *("data set", "model", "runs", "epochs", "s per epoch", "training, min", "imputing and scoring, s"),
        *("parameters", "peak MiB", "threads"),
    )
    notes = (
        "Means over runs, for an epoch of their medians. Other work on the machine is counted too. Memory is "
        "the largest of the process, data and libraries included.",
    )
    return Part("Time and memory", (Table("cost", "Time and memory", header, tuple(rows), notes=notes),))


def _rounded(number: float | None, digits: int = 0) -> Cell:
    return Cell(NONE) if number is None else Cell(f"{number:,.{digits}f}", number)


def _provenance(rows: Sequence[ImputationRow]) -> Part:
    how = f"`{EXPERIMENT.command}` adds runs to the table, and skips those that are there."
    return Part("Where the numbers come from", (how, tsc_costs.provenance(rows)))
