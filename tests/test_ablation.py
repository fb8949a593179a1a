"""The ablation measures what the classifier computes, on training data alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks import ablation
from benchmarks.ablation import Score

from seq2tens.data import load_dataset
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TFeatures
from seq2tens.estimators.random.blocks import DESIGNS, NEWEST


@pytest.fixture(autouse=True)
def _few_blocks(monkeypatch):
    monkeypatch.setattr(ablation, "BLOCKS", 4)


@pytest.fixture(scope="module")
def train():
    return load_dataset("ItalyPowerDemand").train


def held_out(train, n_blocks):
    """Accuracy and log-loss of the predictions that a fit makes for series left out."""
    model = RandomLS2TClassifier(n_blocks=n_blocks, random_state=0).fit(train.sequences, train.labels)
    log_chances = torch.log_softmax(model.ridge_.held_out.double() * model.inverse_temperature_, dim=1)
    truth = np.searchsorted(model.classes_, train.labels)
    accuracy = float((log_chances.argmax(dim=1).numpy() == truth).mean())
    return accuracy, -float(log_chances[np.arange(len(truth)), truth].mean())


def test_variants_score_as_the_classifier_does(train):
    scores = ablation.evaluate(train, seed=0)
    assert f"design {NEWEST - 1}" in scores
    for name, n_blocks in ((ablation.DEFAULT, 4), ("2 blocks", 2), ("8 blocks", 8)):
        assert scores[name] == pytest.approx(held_out(train, n_blocks), rel=1e-4)
    assert scores["2 blocks"].log_loss != pytest.approx(scores["8 blocks"].log_loss, rel=1e-3)


def test_columns_of_a_pool_are_those_it_computes(train):
    design = DESIGNS[NEWEST]
    features = RandomLS2TFeatures(n_blocks=8, random_state=0).fit(train.sequences)
    table = features.transform(train.sequences)
    chosen = ablation.variants(design)
    assert all(len(columns) == table.shape[1] for columns in chosen.values())
    for pool in design.convolutions:
        others = tuple(name for name in design.convolutions if name != pool)
        without = replace_design(features, design._replace(convolutions=others), 4)
        columns = chosen[f"without {pool} of convolutions"]
        np.testing.assert_array_equal(without.transform(train.sequences), table[:, columns])
    first_level = replace_design(features, design._replace(levels=()), 4)
    np.testing.assert_array_equal(first_level.transform(train.sequences), table[:, chosen["levels up to 1"]])


def replace_design(features, design, n_blocks):
    """The first blocks of features, pooled in another way."""
    other = RandomLS2TFeatures(n_blocks=n_blocks, random_state=0)
    other.__dict__.update({**features.__dict__, "n_blocks": n_blocks})
    other.calibrations_ = features.calibrations_[:n_blocks]
    other.blocks_ = [replace(block, design=design) for block in features.blocks_[:n_blocks]]
    return other


def test_levels_are_told_apart():
    layout = ablation.Layout.of(DESIGNS[1], 1)
    parts = list(dict.fromkeys(zip(layout.pool.tolist(), layout.level.tolist(), strict=True)))
    assert parts[4:] == [("share", 2), ("share", 3), ("peak", 2), ("peak", 3)]


def test_the_table_counts_better_and_worse():
    scores = [
        {"default": Score(0.8, 0.5), "less": Score(0.7, 0.4)},
        {"default": Score(0.6, 0.3), "less": Score(0.6, 0.4)},
    ]
    assert ablation.table(scores).splitlines()[2:] == [
        "| default | 0.7000 | 0.4000 |  |  |",
        "| less | 0.6500 | 0.4000 | 0 / 1 | 1 / 1 |",
    ]


def test_the_command_prints_a_table(capsys):
    ablation.main(["--datasets", "JapaneseVowels", "PickupGestureWiimoteZ", "--seeds", "2"])
    printed = capsys.readouterr()
    assert printed.out.startswith("2 data sets, 2 seed(s)")
    assert "| without contests |" in printed.out
    assert [line.split()[0] for line in printed.err.splitlines()] == [
        "JapaneseVowels",
        "PickupGestureWiimoteZ",
    ]


def test_large_sets_are_left_to_those_who_ask():
    assert len(ablation.DATASETS) == 49 + 16 - 2
