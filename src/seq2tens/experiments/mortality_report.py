"""The section of a report about the mortality experiment; it reads results and never trains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from seq2tens.experiments import tsc_costs
from seq2tens.experiments.formats import NONE, NOT_RUN, Cell, Table, count, signed
from seq2tens.experiments.mortality import EXPERIMENT
from seq2tens.experiments.mortality_models import MODELS
from seq2tens.experiments.mortality_search import TRIALS, composite
from seq2tens.experiments.mortality_summary import Runs, final_runs, published
from seq2tens.experiments.mortality_table import EPOCHS, MEASURES, MortalityRow
from seq2tens.experiments.sections import Block, Part, Section

TITLES = {"accuracy": "accuracy", "auprc": "AUPRC", "auroc": "AUROC"}
# In the paper.
SEEDS = 5
# The paper's claim: with the block it is at least as good as without it.
CLAIM = ("fcn-ls2t", "fcn")


def section(rows: Sequence[MortalityRow], *, details: bool = True) -> Section:
    """All that finished cells say; without `details` only what goes into the documentation."""
    runs = final_runs(rows)
    parts = [_overview(rows, runs), _results(runs)]
    if any(row.purpose == "trial" for row in rows):
        parts.append(_searches(rows, details))
    parts += [_costs(runs), _provenance(rows)]
    if details:
        parts.insert(2, Part("Final runs", (_every_run(runs),)))
    return Section(EXPERIMENT.name, "Mortality prediction", tuple(parts))


def _overview(rows: Sequence[MortalityRow], runs: Sequence[Runs]) -> Part:
    whole = [row for group in runs if group.whole for row in group.rows]
    short = sum(len(group.rows) for group in runs if not group.whole)
    trials = sum(row.purpose == "trial" for row in rows)
    models = len({row.model for row in whole})
    told = (
        f"{len(whole)} final runs of {models} of {len(MODELS)} models are finished (in the paper {SEEDS} of "
        f"each), and {trials} trials of searches; {short} other runs were cut short by a limit of epochs."
    )
    return Part("Overview", (told, *_split(whole), _claim(runs)))


def _split(rows: Sequence[MortalityRow]) -> list[str]:
    sizes = sorted({(row.n_train, row.n_validation, row.n_test) for row in rows})
    texts = [f"{train:,} / {validation:,} / {test:,}" for train, validation, test in sizes]
    return [f"Stays for training, validation and test: {' and '.join(texts)}."] if texts else []


def _claim(runs: Sequence[Runs]) -> str:
    """FCN-LS2T against FCN, with the settings that the paper found."""
    found = {group.model: group for group in runs if group.whole and group.origin == "published"}
    if not all(name in found for name in CLAIM):
        return "FCN-LS2T and FCN have not both been run with the published settings yet."
    ours, other = (found[name] for name in CLAIM)
    changes = []
    for name, title in TITLES.items():
        change = ours.mean(f"test_{name}") - other.mean(f"test_{name}")
        scores = [published(model, name) for model in CLAIM]
        paper = scores[0].mean - scores[1].mean if scores[0] and scores[1] else 0.0
        changes.append(f"{title} {signed(change)} (in the paper {signed(paper)})")
    return (
        f"FCN-LS2T less FCN, both with the published settings ({len(ours.rows)} and {len(other.rows)} runs): "
        f"{', '.join(changes)}."
    )


def _results(runs: Sequence[Runs]) -> Part:
    blocks: list[Block] = [_scores(runs)]
    if short := [group for group in runs if not group.whole]:
        blocks.append(_short(short))
    return Part("Test results", tuple(blocks))


def _scores(runs: Sequence[Runs]) -> Table:
    """Models, run or not, with the paper's numbers."""
    rows = []
    for name, model in MODELS.items():
        own = [group for group in runs if group.model == name and group.whole]
        rows += [_score_row(group) for group in own] or [_not_run(name, model.label)]
    notes = (
        "Mean of the runs ± their standard deviation; below it the paper's mean ± its standard deviation, of "
        f"{SEEDS} runs, and ours less the paper's. AUPRC is the average precision. Epochs are means: those "
        "trained, and the best one, whose weights were tested. Settings are the paper's best (published), "
        "ours for baselines whose settings it does not tell (default), or found by search.",
    )
    return Table("scores", "Test set, beside the published numbers", _HEADER, tuple(rows), notes=notes)


_HEADER = ("model", "settings", "runs", "epochs", *TITLES.values())


def _score_row(group: Runs, beside: bool = True) -> tuple[Cell, ...]:
    epochs, best = group.mean("epochs"), group.mean("best_epoch")
    return (
        Cell(group.label),
        Cell(group.origin),
        count(len(group.rows)),
        Cell(f"{epochs:.0f}, best {best:.0f}", epochs),
        *(_score(group, name, beside) for name in MEASURES),
    )


def _score(group: Runs, measure: str, beside: bool) -> Cell:
    mean, spread = group.mean(f"test_{measure}"), group.spread(f"test_{measure}")
    text = f"{mean:.3f}" + ("" if spread is None else f" ± {spread:.3f}")
    paper = published(group.model, measure) if beside else None
    if paper is None:
        return Cell(text, mean)
    return Cell(text, mean, paper.mean, published_spread=paper.std)


def _not_run(name: str, label: str) -> tuple[Cell, ...]:
    scores = []
    for measure in MEASURES:
        paper = published(name, measure)
        assert paper is not None
        scores.append(Cell(NOT_RUN, published=paper.mean, published_spread=paper.std))
    return (Cell(label), Cell(NONE), Cell("0", 0), Cell(NONE), *scores)


def _short(runs: Sequence[Runs]) -> Table:
    rows = [
        (*_score_row(group, beside=False)[:3], count(group.epoch_limit), *_score_row(group, beside=False)[4:])
        for group in runs
    ]
    caption = "Runs that were cut short, not to be compared with published numbers"
    return Table(
        "short", caption, ("model", "settings", "runs", "limit of epochs", *_HEADER[4:]), tuple(rows)
    )


def _searches(rows: Sequence[MortalityRow], details: bool) -> Part:
    groups: dict[tuple[str, int], list[MortalityRow]] = defaultdict(list)
    for row in rows:
        if row.purpose == "trial":
            groups[row.model, row.epoch_limit].append(row)
    blocks: list[Block] = []
    for (model, limit), found in groups.items():
        name = MODELS[model].label if model in MODELS else model
        title = name if limit >= EPOCHS else f"{name}, at most {limit} epochs"
        best = found[int(_composite(found).argmax())]
        blocks.append(f"{title}: {len(found)} trials (in the paper {TRIALS}); the best is `{best.settings}`.")
        if details:
            blocks.append(_trial_table(f"trials-{model}-{limit}", title, found))
    return Part("Searches", tuple(blocks))


def _composite(rows: Sequence[MortalityRow]) -> np.ndarray:
    return composite(np.array([[getattr(row, f"validation_{name}") for name in MEASURES] for row in rows]))


def _trial_table(name: str, title: str, found: Sequence[MortalityRow]) -> Table:
    scores = _composite(found)
    rows = [
        (
            Cell(row.settings),
            *(_plain(getattr(row, f"validation_{measure}")) for measure in MEASURES),
            Cell(f"{scores[i]:.2f}", float(scores[i])),
            count(row.epochs),
        )
        for i, row in sorted(enumerate(found), key=lambda pair: -scores[pair[0]])
    ]
    header = ("settings", *(f"validation {title}" for title in TITLES.values()), "sum of z-scores", "epochs")
    return Table(name, f"Trials of {title}", header, tuple(rows))


def _plain(value: float) -> Cell:
    return Cell(f"{value:.3f}", value)


def _every_run(runs: Sequence[Runs]) -> Table:
    parts = ("validation", "test")
    rows = [
        (
            Cell(group.label),
            Cell(row.settings),
            count(row.seed),
            *(_plain(getattr(row, f"{part}_{name}")) for part in parts for name in MEASURES),
            Cell(f"{row.epochs}, best {row.best_epoch}", row.epochs),
            Cell("by itself" if row.stopped == "patience" else f"at {row.epoch_limit} epochs"),
        )
        for group in runs
        for row in group.rows
    ]
    measures = [f"{part} {title}" for part in parts for title in TITLES.values()]
    header = ("model", "settings", "seed", *measures, "epochs", "ended")
    return Table("runs", "Every final run", header, tuple(rows))


def _costs(runs: Sequence[Runs]) -> Part:
    rows = [
        (
            Cell(group.label),
            Cell(group.origin),
            count(len(group.rows)),
            _rounded(group.mean("epochs")),
            _rounded(group.mean("epoch_seconds"), 1),
            _rounded(group.mean("fit_seconds") / 60, 1),
            _rounded(group.mean("predict_seconds"), 1),
            _rounded(group.mean("parameters")),
            _rounded(max(row.peak_mib for row in group.rows)),
            count(max(row.threads for row in group.rows)),
        )
        for group in runs
    ]
    header = (
        *("model", "settings", "runs", "epochs", "s per epoch", "training, min", "test, s"),
        *("parameters", "peak MiB", "threads"),
    )
    notes = (
        "Means over runs, for an epoch of their medians; an epoch ends with all validation stays. Other work "
        "on the machine is counted too. Memory is the largest of the process, data and libraries included.",
    )
    return Part("Time and memory", (Table("cost", "Time and memory", header, tuple(rows), notes=notes),))


def _rounded(number: float, digits: int = 0) -> Cell:
    return Cell(f"{number:,.{digits}f}", number)


def _provenance(rows: Sequence[MortalityRow]) -> Part:
    how = f"`{EXPERIMENT.command}` adds runs to the table, and skips those that are there."
    return Part("Where the numbers come from", (how, tsc_costs.provenance(rows)))
