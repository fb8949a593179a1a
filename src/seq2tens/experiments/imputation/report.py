"""The section of a report about the imputation experiment; it reads results and never trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq2tens.experiments.imputation import figures
from seq2tens.experiments.imputation.experiment import EXPERIMENT, WATCHED
from seq2tens.experiments.imputation.figures import Line
from seq2tens.experiments.imputation.files import CellFiles, cell_files, read
from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.published import MEASURES
from seq2tens.experiments.imputation.runs import (
    ImputationRuns,
    PairedDifference,
    longest,
    paired_difference,
    published,
    runs_over_seeds,
)
from seq2tens.experiments.imputation.table import PROTOCOL, ImputationRow
from seq2tens.experiments.report.blocks import Block, Part, Picture, ReportOptions, Section
from seq2tens.experiments.report.runs import costs, difference, provenance
from seq2tens.experiments.report.tables import NONE, Entry, Table, count, not_run, number, signed

SETS = {
    "hmnist": "Healing MNIST",
    "sprites": "Sprites",
    "sprites-conv256": "Sprites, convolution 256, batch 16",
    "physionet": "Physionet",
}
TITLES = {
    "nll": "NLL",
    "mse": "MSE",
    "mse_probability": "MSE, not rounded",
    "auroc": "AUROC",
    "coverage": "in 90 % interval",
}
# Columns of the table of each data set; some are not in the paper.
COLUMNS = {
    "hmnist": ("nll", "mse", "mse_probability", "auroc", "coverage"),
    "sprites": ("nll", "mse", "coverage"),
    "sprites-conv256": ("nll", "mse", "coverage"),
    "physionet": ("nll", "mse", "auroc", "coverage"),
}
_COLORS = (
    "Colours lie between 0 and 1, and the published decoder has a Gaussian with variance 1: NLL is at "
    "least 0.919, and intervals are far too wide."
)
NOTES = {
    "hmnist": (
        "NLL and MSE are means over hidden pixels of the test part. For the MSE, means and probabilities "
        "are rounded to 0 or 1, as published. The interval of 90 % of a pixel is the smallest set of values "
        "with that probability, so that more than 90 % may lie in it."
    ),
    "sprites": _COLORS,
    "sprites-conv256": f"{_COLORS} Published: 0.0014 and 0.0013.",
    "physionet": (
        "NLL and MSE are means over holes, a tenth of the observed values, in units of each variable's "
        "deviation. AUROC is that of a logistic regression for death in hospital on imputed stays, fitted to "
        "the first half of them and scored on the second, the mean over random orders of the stays."
    ),
}
# The paper's claim: B-LS2T improves GP-VAE.
CLAIM = ("gp-vae-bls2t", "gp-vae")


def section(rows: Sequence[ImputationRow], **options: Any) -> Section:
    """The section about finished cells; `options` as in `ReportOptions`."""
    scope = ReportOptions(**options)
    earlier = runs_over_seeds([row for row in rows if row.protocol != PROTOCOL])
    runs = runs_over_seeds([row for row in rows if row.protocol == PROTOCOL])
    parts = [_overview(runs, earlier)]
    for name in SETTINGS:
        if any(group.dataset == name for group in runs):
            parts.append(_of_set(name, runs, scope))
    if earlier:
        parts.append(_earlier(earlier))
    named = [((SETS[group.dataset], group.label), group) for group in runs]
    parts += [costs(named, ("data set", "model"), "imputing and scoring, s"), provenance(rows, EXPERIMENT)]
    return Section(EXPERIMENT.name, "Imputation", tuple(parts))


def _overview(runs: Sequence[ImputationRuns], earlier: Sequence[ImputationRuns]) -> Part:
    whole = sum(len(group.rows) for group in runs if group.whole)
    short = sum(len(group.rows) for group in runs if not group.whole)
    counts = (
        f"{whole} runs are finished, {short} others were cut short by fewer epochs or training sequences "
        "than in the paper."
    )
    if earlier:
        counts += f" {sum(len(group.rows) for group in earlier)} are of an earlier protocol."
    return Part("Overview", (counts, *_claims(runs)))


def _claims(runs: Sequence[ImputationRuns]) -> list[str]:
    """Compare GP-VAE with and without B-LS2T, where both were trained in the same way."""
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
        f"{_in_orders(paired_difference(ours, other))}"
    )


def _in_orders(paired: PairedDifference | None) -> str:
    if paired is None:
        return ""
    return (
        f" In {paired.orders} random orders of the stays, the same for both, the difference of AUROC is "
        f"{signed(paired.mean)} ± {paired.spread:.3f}, and above 0 in {paired.positive} of them."
    )


def _of_set(dataset: str, runs: Sequence[ImputationRuns], scope: ReportOptions) -> Part:
    of_set = [group for group in runs if group.dataset == dataset]
    blocks: list[Block] = [_scores(dataset, of_set), *_paired(dataset, of_set)]
    if short := [group for group in of_set if not group.whole]:
        blocks.append(_shortened_runs(dataset, short))
    if scope.folder is not None:
        files = [(group, cell_files(scope.folder, group.rows[0].key)) for group in longest(of_set, dataset)]
        blocks += _curve_table(dataset, files)
        if scope.details:
            blocks += [*_curve(dataset, files), *_calibration(dataset, files), *_frames(dataset, files)]
    return Part(SETS[dataset], tuple(blocks))


def _scores(dataset: str, runs: Sequence[ImputationRuns]) -> Table:
    """The table of all models, run or not, with the paper's numbers."""
    rows: list[tuple[Entry, ...]] = []
    for name, model in MODELS.items():
        scored = [_score_row(group) for group in runs if group.model == name and group.whole]
        absent = (not_run(published(model.label, dataset, measure)) for measure in COLUMNS[dataset])
        in_paper = name in SETTINGS[dataset].models
        rows += scored or ([(Entry(model.label), count(0), Entry(NONE), *absent)] if in_paper else [])
    parts = [f"{group.rows[0].n_train:,} / {group.rows[0].n_test:,}" for group in runs if group.whole][:1]
    sizes = f" Sequences for training and test: {parts[0]}." if parts else ""
    notes = (
        "Mean of the runs ± their standard deviation; below it the paper's mean ± its standard deviation, "
        f"and ours less the paper's. {NOTES[dataset]}{sizes}"
    )
    header = ("model", "runs", "epochs", *(TITLES[name] for name in COLUMNS[dataset]))
    caption = f"{SETS[dataset]}, test part, with the published numbers below ours"
    return Table(f"{dataset}-scores", caption, header, tuple(rows), notes=(notes,), main=True)


def _score_row(group: ImputationRuns) -> tuple[Entry, ...]:
    epochs = count(group.epoch_limit) if group.trained else Entry(NONE)
    scores = map(group.published_score, COLUMNS[group.dataset])
    return (Entry(group.label), count(len(group.rows)), epochs, *scores)


def _paired(dataset: str, runs: Sequence[ImputationRuns]) -> list[Block]:
    """Differences of AUROC from GP-VAE in the same random orders, for all models."""
    whole = [group for group in runs if group.whole]
    references = [group for group in whole if group.model == CLAIM[1]]
    pairs = [
        (group, paired)
        for group in whole
        for reference in references
        if group is not reference and (paired := paired_difference(group, reference))
    ]
    if not pairs:
        return []
    rows = [
        (
            Entry(group.label),
            count(len(group.rows)),
            Entry(f"{signed(paired.mean)} ± {paired.spread:.3f}", paired.mean),
            Entry(f"{paired.positive} of {paired.orders}"),
        )
        for group, paired in pairs
    ]
    caption = f"{SETS[dataset]}: AUROC less that of GP-VAE, in the same random orders of the sequences"
    notes = ("Mean ± standard deviation over orders, of means over runs.",)
    header = ("model", "runs", "difference", "above 0")
    return [Table(f"{dataset}-paired", caption, header, tuple(rows), notes=notes)]


def _earlier(runs: Sequence[ImputationRuns]) -> Part:
    """The table of rows from the earlier protocol."""
    rows = [
        (
            Entry(SETS[group.dataset]),
            Entry(group.model),
            count(len(group.rows)),
            Entry(group.training) if group.trained else Entry(NONE),
            *map(group.score, ("nll", "mse", "auroc")),
        )
        for group in runs
    ]
    caption = "Runs of an earlier protocol, not to be compared with published numbers nor with the others"
    notes = (
        "Physionet: means of an hour, no holes, one order of the stays. Healing MNIST: turned bilinearly, "
        "50,000 sequences. `mean` was that of the data, `vae` and `hi-vae` had a convolution over time, and "
        "`gp-vae-bls2t` was what is `gp-vae-bls2t-wide` now.",
    )
    header = ("data set", "model", "runs", "training", "NLL", "MSE", "AUROC")
    return Part("Earlier protocol", (Table("earlier", caption, header, tuple(rows), notes=notes),))


def _shortened_runs(dataset: str, runs: Sequence[ImputationRuns]) -> Table:
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
    notes = (f"Of the first {WATCHED:,} test sequences, first seed; nothing is chosen by it.",)
    header = ("epoch", *(line.label for line in lines))
    return [Table(f"{dataset}-curve-table", caption, header, tuple(rows), notes=notes)]


def _curve(dataset: str, files: Files) -> list[Block]:
    for column, title in (
        ("validation_nll", "NLL of hidden entries"),
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
