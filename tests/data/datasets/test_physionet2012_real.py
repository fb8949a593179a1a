"""The real stays: counts, the two layouts, and that nothing of the test set reaches a network."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from data.datasets.stays import COLUMNS, as_text
from data.ragged import assert_same
from seq2tens.data import Preparation, Sequences, physionet2012
from seq2tens.estimators import FCNClassifier

pytestmark = pytest.mark.data("physionet2012")

KEYS = ("record", "minute", "param", "value")
PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def folder():
    path = os.environ.get("SEQ2TENS_DATA")
    if not path:
        pytest.skip("SEQ2TENS_DATA is not set")
    return Path(path, "physionet2012")


@pytest.fixture(scope="module")
def stays(folder):
    return physionet2012.load(folder)


@pytest.fixture(scope="module")
def arrays(folder):
    """The packed files by letter."""
    return {letter: dict(np.load(folder / f"physionet_{letter}.npz")) for letter in "abc"}


def test_counts(stays):
    assert len(stays.left_out) == 12
    parts = [getattr(stays, name) for name in PARTS]
    assert [len(part) for part in parts] == [7680 - 9, 1920 - 3, 2400]
    assert sum(map(len, parts)) + len(stays.left_out) == 12_000
    assert [round(100 * part.labels.mean(), 1) for part in parts] == [14.2, 14.2, 14.2]
    assert {part.sequences.n_channels for part in parts} == {37}
    assert {part.sequences.static.shape[1] for part in parts} == {7}
    assert stays.skipped == ()
    assert stays.repeated == 11_792


def test_deaths_in_each_set(arrays, stays):
    everyone = [file["outcomes"][:, 5] for file in arrays.values()]
    assert [(len(deaths), round(100 * deaths.mean(), 2)) for deaths in everyone] == [
        (4000, 13.85),
        (4000, 14.2),
        (4000, 14.62),
    ]
    died = sum(int(getattr(stays, name).labels.sum()) for name in PARTS)
    left_out = [np.isin(file["outcomes"][:, 0], stays.left_out) for file in arrays.values()]
    assert died == sum(int(d[~out].sum()) for d, out in zip(everyone, left_out, strict=True))


def test_steps_are_distinct_times_within_two_days(stays):
    for name in PARTS:
        sequences = getattr(stays, name).sequences
        inside = np.ones(len(sequences.times), dtype=bool)
        inside[sequences.offsets[:-1]] = False
        assert (np.diff(sequences.times, prepend=0)[inside] > 0).all()
        assert sequences.times.min() >= 0
        assert sequences.times.max() <= 48
        assert not np.isnan(sequences.values).all(axis=1).any()


def rows_of(file, records):
    """The entries of some records."""
    chosen = np.isin(file["record"], records)
    return {key: file[key][chosen] for key in KEYS}


def some_records(file, left_out):
    """A few of each kind: the first, those left out, with repeated values, with unknown ones."""
    record, minute, parameter, value = (file[key] for key in KEYS)
    again = (np.diff(record) == 0) & (np.diff(minute) == 0) & (np.diff(parameter) == 0)
    unknown = np.unique(record[(value == -1) & (parameter > 5)])
    kinds = [np.unique(record), np.unique(record[1:][again]), unknown]
    return np.unique(np.concatenate([np.intersect1d(left_out, record), *(kind[:12] for kind in kinds)]))


@pytest.mark.parametrize("letter", "abc")
def test_text_and_arrays_are_one(letter, folder, arrays, stays, tmp_path):
    file, names = arrays[letter], (folder / "physionet_params.txt").read_text().split()
    records = some_records(file, stays.left_out)
    for record in records:
        entries = rows_of(file, [record])
        (tmp_path / f"{record}.txt").write_text(as_text(*(entries[key] for key in KEYS), names))
    outcomes = tmp_path / "Outcomes.txt"
    outcomes.write_text(
        COLUMNS + "".join(",".join(map(str, row)) + "\n" for row in file["outcomes"].tolist())
    )
    found = physionet2012.read_text(tmp_path, outcomes)
    assert found.left_out.tolist() == np.intersect1d(stays.left_out, records).tolist()
    assert found.repeated > 0
    compared = 0
    for name in PARTS:
        part = getattr(stays, name)
        rows = np.flatnonzero(np.isin(part.ids, records))
        same = np.searchsorted(found.stays.ids, part.ids[rows])
        assert_same(found.stays.sequences[same], part.sequences[rows])
        assert found.stays.labels[same].tolist() == part.labels[rows].tolist()
        compared += len(rows)
    assert compared == len(found.stays) >= 20


def cut(folder, file, records, altered, names):
    """A folder with some records only; the values of the altered ones are three times as large."""
    folder.mkdir()
    entries = rows_of(file, records)
    factor = np.where(np.isin(entries["record"], altered) & (entries["param"] > 5), 3, 1)
    entries["value"] = (entries["value"] * factor).astype(np.float32)
    (folder / "physionet_params.txt").write_text(names)
    np.savez(folder / "physionet_a.npz", **entries, outcomes=file["outcomes"])
    return folder


@pytest.fixture(scope="module")
def altered(folder, arrays, tmp_path_factory):
    """Some stays as they are, and with other values in the test set, in all but training, and in training."""
    rng = np.random.default_rng(0)
    file, names = arrays["a"], (folder / "physionet_params.txt").read_text()
    died = file["outcomes"][:, 5] == 1
    deaths, others = (rng.permutation(file["outcomes"][died == kind, 0]) for kind in (True, False))
    split = {
        "train": np.concatenate([deaths[:12], others[:28]]),
        "val": np.concatenate([deaths[12:16], others[28:40]]),
        "test": np.concatenate([deaths[16:20], others[40:52]]),
    }
    records, home = np.concatenate(list(split.values())), tmp_path_factory.mktemp("altered")
    changes = {
        "nothing": [],
        "test": split["test"],
        "held": np.concatenate([split["val"], split["test"]]),
        "train": split["train"],
    }
    return {
        name: physionet2012.load(cut(home / name, file, records, changed, names), split=split)
        for name, changed in changes.items()
    }


def differ(one, other):
    return not np.array_equal(one.sequences.values, other.sequences.values, equal_nan=True)


def test_what_is_learned_from_data_is_learned_from_training_data(altered):
    states = {
        name: Preparation(since_observed=True).fit(stays.train.sequences).state()
        for name, stays in altered.items()
    }
    assert differ(altered["held"].validation, altered["nothing"].validation)
    assert states["held"] == states["nothing"]
    assert states["train"] != states["nothing"]


def weights_after_training(stays):
    model = FCNClassifier(
        width=4, epochs=1, batch_size=8, scaling="channel", since_observed=True, random_state=0, device="cpu"
    )
    model.fit(stays.train.sequences, stays.train.labels)
    model.predict_proba(stays.test.sequences)
    return model.network_.state_dict()


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_other_test_data_train_the_same_network(altered):
    assert differ(altered["test"].test, altered["nothing"].test)
    expected = weights_after_training(altered["nothing"])
    assert equal(weights_after_training(altered["test"]), expected)
    assert equal(weights_after_training(altered["held"]), expected)
    assert not equal(weights_after_training(altered["train"]), expected)


def test_all_stays_are_prepared(stays):
    prepared = Preparation(since_observed=True).fit(stays.train.sequences[:500])
    kinds = [kind for kind, _ in prepared.columns]
    assert [kinds.count(k) for k in ("value", "observed", "since", "time", "static")] == [37, 37, 37, 1, 7]
    for name in PARTS:
        result = prepared.transform(getattr(stays, name).sequences[:100])
        assert isinstance(result, Sequences)
        assert np.isfinite(result.values).all()
