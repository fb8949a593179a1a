"""The section of a report about the imputation experiment; it reads results and never trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq2tens.experiments.imputation import figures
from seq2tens.experiments.imputation.experiment import EXPERIMENT, WATCHED
from seq2tens.experiments.imputation.figures import Line
from seq2tens.experiments.imputation.files import CellFiles, cell_files, read
from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.published import MEASURES, SCORES
from seq2tens.experiments.imputation.runs import ImputationRuns, longest, published, runs_over_seeds
from seq2tens.experiments.imputation.table import ImputationRow
from seq2tens.experiments.report.blocks import Block, Part, Picture, ReportOptions, Section
from seq2tens.experiments.report.runs import costs, difference, provenance
from seq2tens.experiments.report.tables import NONE, Entry, Table, count, not_run, number

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


def section(rows: Sequence[ImputationRow], **options: Any) -> Section:
    """All that finished cells say; `options` as in `ReportOptions`."""
    scope = ReportOptions(**options)
    runs = runs_over_seeds(rows)
    parts = [_overview(runs)]
    for name in SETTINGS:
        if any(group.dataset == name for group in runs):
            parts.append(_of_set(name, runs, scope))
    named = [((SETS[group.dataset], group.label), group) for group in runs]
    parts += [costs(named, ("data set", "model"), "imputing and scoring, s"), provenance(rows, EXPERIMENT)]
    return Section(EXPERIMENT.name, "Imputation", tuple(parts))


def _overview(runs: Sequence[ImputationRuns]) -> Part:
    whole = sum(len(group.rows) for group in runs if group.whole)
    short = sum(len(group.rows) for group in runs if not group.whole)
    counts = (
        f"{whole} runs are finished, {short} others were cut short by fewer epochs or training sequences "
        "than in the paper."
    )
    return Part("Overview", (counts, *_claims(runs)))


def _claims(runs: Sequence[ImputationRuns]) -> list[str]:
    """GP-VAE with B-LS2T against the one without, wherever both were trained alike."""
    by_model = {(group.dataset, group.epoch_limit, group.limit, group.model): group for group in runs}
    trainings = dict.fromkeys(place[:3] for place, group in by_model.items() if group.model in CLAIM)
    pairs = [[by_model.get((*training, model)) for model in CLAIM] for training in trainings]
    return [_claim(ours, other) for ours, other in pairs if ours and other]


def _claim(ours: ImputationRuns, other: ImputationRuns) -> str:
    pair, dataset = (ours, other), ours.dataset
    changes = [
        difference(
            TITLES[name],
            [group.mean(name) for group in pair],
            [published(group.label, dataset, name) for group in pair],
        )
        for name in MEASURES[dataset]
    ]
    return (
        f"{SETS[dataset]}, {ours.training}: GP-VAE (B-LS2T) less GP-VAE ({len(ours.rows)} and "
        f"{len(other.rows)} runs): {', '.join(changes)}. Less is better for NLL and MSE, more for AUROC."
    )


def _of_set(dataset: str, runs: Sequence[ImputationRuns], scope: ReportOptions) -> Part:
    own = [group for group in runs if group.dataset == dataset]
    blocks: list[Block] = [_scores(dataset, own)]
    if short := [group for group in own if not group.whole]:
        blocks.append(_short(dataset, short))
    if scope.folder is not None:
        files = [(group, cell_files(scope.folder, group.rows[0].key)) for group in longest(own, dataset)]
        blocks += _curve_table(dataset, files)
        if scope.details:
            blocks += [*_curve(dataset, files), *_calibration(dataset, files), *_frames(dataset, files)]
    return Part(SETS[dataset], tuple(blocks))


def _scores(dataset: str, runs: Sequence[ImputationRuns]) -> Table:
    """Models, run or not, with the paper's numbers."""
    rows: list[tuple[Entry, ...]] = []
    ours = [model.label for model in MODELS.values()]
    for label in ours + [name for name in SCORES if name not in ours and dataset in SCORES[name]]:
        own = [_score_row(group) for group in runs if group.label == label and group.whole]
        absent = (not_run(published(label, dataset, measure)) for measure in COLUMNS[dataset])
        rows += own or [(Entry(label), count(0), Entry(NONE), *absent)]
    parts = [f"{group.rows[0].n_train:,} / {group.rows[0].n_test:,}" for group in runs if group.whole][:1]
    sizes = f" Sequences for training and test: {parts[0]}." if parts else ""
    notes = (
        "Mean of the runs ± their standard deviation; below it the paper's mean ± its standard deviation, "
        f"and ours less the paper's. {NOTES[dataset]}{sizes}"
    )
    header = ("model", "runs", "epochs", *(TITLES[name] for name in COLUMNS[dataset]))
    caption = f"{SETS[dataset]}, test part, beside the published numbers"
    return Table(f"{dataset}-scores", caption, header, tuple(rows), notes=(notes,), main=True)


def _score_row(group: ImputationRuns) -> tuple[Entry, ...]:
    epochs = count(group.epoch_limit) if group.trained else Entry(NONE)
    scores = map(group.published_score, COLUMNS[group.dataset])
    return (Entry(group.label), count(len(group.rows)), epochs, *scores)


def _short(dataset: str, runs: Sequence[ImputationRuns]) -> Table:
    rows = [
        (
            Entry(group.label),
            count(len(group.rows)),
            count(group.epoch_limit),
            number(group.rows[0].n_train),
            *map(group.score, COLUMNS[dataset]),
        )
        for group in runs
    ]
    header = ("model", "runs", "epochs", "training sequences", *(TITLES[name] for name in COLUMNS[dataset]))
    caption = f"{SETS[dataset]}: runs that were cut short, not to be compared with published numbers"
    return Table(f"{dataset}-short", caption, header, tuple(rows))


Files = Sequence[tuple[ImputationRuns, CellFiles]]


def _lines(files: Files, kind: str, x: str, y: str) -> list[Line]:
    """Two columns of each file of a kind, as lines of a figure."""
    curves = [(group.name, read(getattr(paths, kind))) for group, paths in files]
    return [Line(name, curve[x], curve[y]) for name, curve in curves if y in curve]


def _curve_table(dataset: str, files: Files) -> list[Block]:
    """The validation NLL epoch by epoch."""
    lines = _lines(files, "curve", "epoch", "validation_nll")
    if not lines:
        return []
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    epochs = sorted({epoch for of_line in values for epoch in of_line})
    rows = [(count(int(epoch)), *(number(of_line.get(epoch), 3) for of_line in values)) for epoch in epochs]
    caption = f"{SETS[dataset]}: NLL of hidden entries after each epoch"
    notes = (f"Of the first {WATCHED:,} validation sequences, first seed; nothing is chosen by it.",)
    header = ("epoch", *(line.label for line in lines))
    return [Table(f"{dataset}-curve-table", caption, header, tuple(rows), notes=notes)]


def _curve(dataset: str, files: Files) -> list[Block]:
    for column, title in (
        ("validation_nll", "validation NLL"),
        ("train_loss", "training loss, minus the bound"),
    ):
        if lines := _lines(files, "curve", "epoch", column):
            caption = f"{SETS[dataset]}: {title} after each epoch, first seed of each model."
            return [Picture(f"{dataset}-curve", caption, figures.curves(lines, title))]
    return []


def _calibration(dataset: str, files: Files) -> list[Block]:
    lines = _lines(files, "calibration", "predicted", "found")
    if not lines:
        return []
    if SETTINGS[dataset].network.get("likelihood") == "bernoulli":
        axes = "predicted probability of a white pixel", "share of white pixels"
        shown = "of hidden pixels with about the same predicted probability, how many are white"
    else:
        axes = "level of the interval", "share of entries in it"
        shown = "how many hidden entries lie in their central interval of each level"
    caption = f"{SETS[dataset]}, calibration: {shown}; on the dashed line if predictions are right."
    return [Picture(f"{dataset}-calibration", caption, figures.calibration(lines, *axes))]


def _frames(dataset: str, files: Files) -> list[Block]:
    return [
        Picture(
            f"{dataset}-frames-{group.model}",
            f"{SETS[dataset]}, {group.name}: frames of test sequences. Missing entries are blue.",
            figures.frames(paths.picture),
        )
        for group, paths in files
        if paths.picture.exists()
    ]
