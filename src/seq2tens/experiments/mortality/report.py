"""The section of a report about the mortality experiment; it reads results and never trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seq2tens.experiments.mortality.comparison import later_splits, single_runs
from seq2tens.experiments.mortality.experiment import EXPERIMENT
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.published import SCORES
from seq2tens.experiments.mortality.recipes import RECIPES
from seq2tens.experiments.mortality.table import EPOCHS, MEASURES, MortalityRow
from seq2tens.experiments.mortality.tuning import TRIALS, composite, validation_measures
from seq2tens.experiments.report.blocks import Block, Missing, Part, ReportOptions, Section
from seq2tens.experiments.report.runs import Runs, costs, difference, grouped, in_order, provenance
from seq2tens.experiments.report.tables import NONE, Entry, Score, Table, count, not_run, number

TITLES = {"accuracy": "accuracy", "auprc": "AUPRC", "auroc": "AUROC"}
# The number of runs in the paper.
SEEDS = 5
# The paper's claim: the LS2T block does not make the FCN worse.
CLAIM = ("fcn-ls2t", "fcn")
BY_SEARCH = "found by search"


@dataclass(frozen=True)
class FinalRuns(Runs[MortalityRow]):
    """Final runs of one model with the same settings, limit of epochs, recipe and split."""

    model: str
    settings: str
    epoch_limit: int
    recipe: str
    split: int

    @property
    def label(self) -> str:
        """The name of the model on a page."""
        return label(self.model)

    @property
    def origin(self) -> str:
        """The origin of the settings."""
        return BY_SEARCH if self.settings.startswith("{") else self.settings

    @property
    def whole(self) -> bool:
        """Whether the number of epochs was not limited below the paper's."""
        return self.epoch_limit >= EPOCHS

    @property
    def comparable(self) -> bool:
        """Whether it can be compared with the paper's numbers, which are for one split."""
        return self.whole and self.split == 0


def final_runs(rows: Sequence[MortalityRow]) -> list[FinalRuns]:
    """All groups of final runs, models in the order of the registry."""
    finals = [row for row in rows if row.purpose == "final"]
    groups = grouped(finals, "model", "settings", "epoch_limit", "recipe", "split")
    order = in_order((row.model for row in finals), MODELS)
    return [FinalRuns(groups[key], *key) for key in sorted(groups, key=lambda key: order.index(key[0]))]


def label(model: str) -> str:
    """The name of a model on a page."""
    return MODELS[model].label if model in MODELS else model


def published(model: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, or None if it has none."""
    return SCORES.get(label(model), {}).get(measure)


def section(rows: Sequence[MortalityRow], **options: Any) -> Section:
    """The section about finished cells; `options` as in `ReportOptions`."""
    details = ReportOptions(**options).details
    runs = final_runs(rows)
    parts = [_overview(rows, runs), _results(runs)]
    if details:
        parts.append(Part("Final runs", (_every_run(runs),)))
    if trials := [row for row in rows if row.purpose == "trial"]:
        parts.append(_searches(trials, details))
    named = [((group.label, f"{group.origin}, {group.recipe}"), group) for group in runs]
    note = "; an epoch ends with all validation stays"
    parts += [costs(named, ("model", "settings"), "test, s", note), provenance(rows, EXPERIMENT)]
    return Section(EXPERIMENT.name, "Mortality prediction", tuple(parts))


def _overview(rows: Sequence[MortalityRow], runs: Sequence[FinalRuns]) -> Part:
    whole = [row for group in runs if group.whole for row in group.rows]
    short = sum(len(group.rows) for group in runs if not group.whole)
    trials = sum(row.purpose == "trial" for row in rows)
    models = len({row.model for row in whole})
    counts = (
        f"{len(whole)} final runs of {models} of {len(MODELS)} models are finished (in the paper {SEEDS} of "
        f"each), and {trials} trials of searches; {short} other runs were cut short by a limit of epochs."
    )
    return Part("Overview", (counts, *_split(whole), *(_claim(runs, recipe) for recipe in RECIPES)))


def _split(rows: Sequence[MortalityRow]) -> list[str]:
    sizes = sorted({(row.n_train, row.n_validation, row.n_test) for row in rows})
    texts = [f"{train:,} / {validation:,} / {test:,}" for train, validation, test in sizes]
    return [f"Stays for training, validation and test: {' and '.join(texts)}."] if texts else []


def _claim(runs: Sequence[FinalRuns], recipe: str) -> str:
    """Compare FCN-LS2T with FCN, both with the published settings."""
    chosen = [group for group in runs if group.comparable and group.recipe == recipe]
    by_model = {group.model: group for group in chosen if group.origin == "published"}
    if not all(name in by_model for name in CLAIM):
        return Missing(
            f"FCN-LS2T and FCN have not both been run with the published settings by `{recipe}` yet."
        )
    pair = [by_model[name] for name in CLAIM]
    changes = [
        difference(
            title, [group.mean(f"test_{name}") for group in pair], [published(model, name) for model in CLAIM]
        )
        for name, title in TITLES.items()
    ]
    n_ours, n_others = (len(group.rows) for group in pair)
    return (
        f"FCN-LS2T less FCN, both with the published settings, `{recipe}` ({n_ours} and {n_others} runs): "
        f"{', '.join(changes)}."
    )


def _results(runs: Sequence[FinalRuns]) -> Part:
    blocks: list[Block] = [_scores(runs)]
    rows = [row for group in runs for row in group.rows]
    blocks += [table for table in (single_runs(rows), later_splits(rows)) if table is not None]
    if short := [group for group in runs if not group.whole]:
        blocks.append(_short(short))
    return Part("Test results", tuple(blocks))


def _scores(runs: Sequence[FinalRuns]) -> Table:
    """The table of all models, run or not, with the paper's numbers."""
    rows: list[tuple[Entry, ...]] = []
    for name in MODELS:
        scored = [_score_row(group) for group in runs if group.model == name and group.comparable]
        absent = (not_run(published(name, measure)) for measure in MEASURES)
        none = (Entry(NONE), Entry(NONE), count(0), Entry(NONE))
        rows += scored or [(Entry(label(name)), *none, *absent, Entry(NONE))]
    notes = (
        "Mean of the runs ± their standard deviation; below it the paper's mean ± its standard deviation, of "
        f"{SEEDS} runs, and ours less the paper's. AUPRC is the average precision. Epochs are means: those "
        "trained, and the best one, whose weights were tested. Settings are the paper's best (published), "
        "ours for baselines whose settings it does not tell (default), or found by search. The recipe "
        "`paper` is the published one, `paper-masked` has masks, and inputs and training of our own. "
        "Accuracy is that at a probability of 1/2, which measures calibration as well; the last column has "
        "it at the threshold that is best for the validation stays.",
    )
    header = ("model", "settings", "recipe", "runs", "epochs", *TITLES.values(), "accuracy, threshold chosen")
    caption = "Test set, with the published numbers below ours"
    return Table("scores", caption, header, tuple(rows), notes=notes, main=True)


def _score_row(group: FinalRuns) -> tuple[Entry, ...]:
    epochs, best = group.mean("epochs"), group.mean("best_epoch")
    scores = (group.score(f"test_{name}", published(group.model, name)) for name in MEASURES)
    chosen = group.score("test_accuracy_at_threshold")
    return (*_names(group), Entry(f"{epochs:.0f}, best {best:.0f}", epochs), *scores, chosen)


def _names(group: FinalRuns) -> tuple[Entry, ...]:
    return Entry(group.label), Entry(group.origin), Entry(group.recipe), count(len(group.rows))


def _short(runs: Sequence[FinalRuns]) -> Table:
    rows = [
        (*_names(group), count(group.epoch_limit), *(group.score(f"test_{name}") for name in MEASURES))
        for group in runs
    ]
    caption = "Runs that were cut short, not to be compared with published numbers"
    header = ("model", "settings", "recipe", "runs", "limit of epochs", *TITLES.values())
    return Table("short", caption, header, tuple(rows))


def _searches(trials: Sequence[MortalityRow], details: bool) -> Part:
    blocks: list[Block] = []
    for (model, limit, recipe), rows in grouped(trials, "model", "epoch_limit", "recipe").items():
        title = f"{label(model)}, {recipe}" + ("" if limit >= EPOCHS else f", at most {limit} epochs")
        scores = composite(np.array([validation_measures(row) for row in rows]))
        best = rows[int(scores.argmax())].settings
        blocks.append(f"{title}: {len(rows)} trials (in the paper {TRIALS}); the best is `{best}`.")
        if details:
            blocks.append(_trial_table(f"trials-{model}-{recipe}-{limit}", title, rows, scores.tolist()))
    return Part("Searches", tuple(blocks))


def _trial_table(name: str, title: str, trials: Sequence[MortalityRow], scores: Sequence[float]) -> Table:
    rows = [
        (
            Entry(row.settings),
            *(number(value, 3) for value in validation_measures(row)),
            number(score, 2),
            count(row.epochs),
        )
        for row, score in sorted(zip(trials, scores, strict=True), key=lambda pair: -pair[1])
    ]
    header = ("settings", *(f"validation {title}" for title in TITLES.values()), "sum of z-scores", "epochs")
    return Table(name, f"Trials of {title}", header, tuple(rows))


def _every_run(runs: Sequence[FinalRuns]) -> Table:
    columns = [f"{part}_{measure}" for part in ("validation", "test") for measure in MEASURES]
    rows = [
        (
            Entry(group.label),
            Entry(row.settings),
            Entry(row.recipe),
            count(row.split),
            count(row.seed),
            *(number(getattr(row, column), 3) for column in columns),
            Entry(f"{row.epochs}, best {row.best_epoch}", row.epochs),
            Entry("by itself" if row.stopped == "patience" else f"at {row.epoch_limit} epochs"),
        )
        for group in runs
        for row in group.rows
    ]
    measures = [f"{part} {title}" for part in ("validation", "test") for title in TITLES.values()]
    header = ("model", "settings", "recipe", "split", "seed", *measures, "epochs", "ended")
    return Table("runs", "Every final run", header, tuple(rows))
