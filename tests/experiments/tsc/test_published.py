"""The numbers of the paper are those on file, and agree with each other."""

import statistics
from collections import defaultdict

import pytest

from seq2tens.experiments.tsc import published
from seq2tens.experiments.tsc.models import MODELS
from seq2tens.experiments.tsc.published_runs import RUNS


@pytest.mark.data("../published")
def test_accuracies(on_file):
    rows = on_file("tsc_accuracy.csv")
    assert len(rows) == len(published.DATASETS) * len(published.MODELS)
    for row in rows:
        found = published.ACCURACY[row["dataset"]].get(row["model"])
        if not row["mean_accuracy"]:
            assert found is None
        else:
            assert found.mean == float(row["mean_accuracy"])
            assert found.std == (float(row["std_accuracy"]) if row["std_accuracy"] else None)


@pytest.mark.data("../published")
def test_data_sets(on_file):
    rows = on_file("tsc_datasets.csv")
    assert list(published.DATASETS) == [row["dataset"] for row in rows]
    for row in rows:
        facts = published.DATASETS[row.pop("dataset")]
        assert facts._asdict() == {name: int(value) for name, value in row.items()}


@pytest.mark.data("../published")
def test_probabilities(on_file):
    rows = on_file("bayesian_signed_rank.csv")
    assert {
        (row["baseline"], row["model"]): tuple(
            float(row[name]) for name in ("p_baseline_better", "p_equivalent", "p_model_better")
        )
        for row in rows
    } == published.SIGNED_RANK


@pytest.mark.data("../published")
def test_single_runs(on_file):
    found = defaultdict(list)
    for row in on_file("tsc_runs.csv"):
        run = (float(row["accuracy"]), int(row["epochs"]), float(row["lowest_training_loss"]))
        model = row["model"].replace("_3", "-3").replace("_", "-")
        found[row["dataset"], model].append(run)
    assert {place: [tuple(run) for run in runs] for place, runs in RUNS.items()} == found


def test_the_published_means_are_those_of_the_single_runs():
    assert set(RUNS) == {(name, model) for name in published.DATASETS for model in published.TRAINED}
    for (name, model), runs in RUNS.items():
        assert len(runs) == 5
        mean = statistics.fmean(run.accuracy for run in runs)
        assert published.ACCURACY[name][model].mean == pytest.approx(mean, abs=0.00056)


def test_the_gaps_are_those_of_the_paper():
    gaps = {
        (dataset, model)
        for dataset in published.DATASETS
        for model in published.MODELS
        if model not in published.ACCURACY[dataset]
    }
    assert gaps == {
        ("NetFlow", "ARKernel"),
        ("NetFlow", "mvARF"),
        ("PEMS", "mvARF"),
        ("PEMS", "MUSE"),
        ("PEMS", "MLSTMFCN"),
    }


def test_every_column_of_the_paper_can_be_run():
    assert {model.published for model in MODELS.values()} - {None} == set(published.MODELS)


def test_ranks_and_probabilities_are_of_known_models():
    assert set(published.MEAN_RANKS) == set(published.MODELS)
    assert {name for pair in published.SIGNED_RANK for name in pair} == set(published.MODELS)
    for probabilities in published.SIGNED_RANK.values():
        assert sum(probabilities) == pytest.approx(1, abs=0.0021)
