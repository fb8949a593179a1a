import importlib.util
import os
import socket

import numpy as np
import pytest

from seq2tens import data
from seq2tens.data import available_datasets, load_dataset, read_npz

# The table of the README beside the files: train, test, channels, shortest, longest, classes.
TSC = {
    "ArabicDigits": (6600, 2200, 13, 4, 93, 10),
    "AUSLAN": (1140, 1425, 22, 45, 136, 95),
    "CharacterTrajectories": (300, 2558, 3, 60, 182, 20),
    "DigitShapes": (24, 16, 2, 30, 98, 4),
    "ECG": (100, 100, 2, 39, 152, 2),
    "JapaneseVowels": (270, 370, 12, 7, 29, 9),
    "KickvsPunch": (16, 10, 62, 274, 841, 2),
    "LIBRAS": (180, 180, 2, 45, 45, 15),
    "PenDigits": (300, 10692, 2, 8, 8, 10),
    "Shapes": (18, 12, 2, 52, 98, 3),
    "UWave": (896, 361, 3, 315, 315, 8),
    "Wafer": (298, 896, 6, 104, 198, 2),
}
# Likewise; those with the most unlike contents.
OTHERS = {
    "AllGestureWiimoteX": (300, 700, 1, 2, 385, 10),
    "DodgerLoopDay": (78, 80, 1, 288, 288, 7),
    "PigArtPressure": (104, 208, 1, 2000, 2000, 52),
    "Blink": (500, 450, 4, 510, 510, 2),
}


@pytest.fixture
def folder():
    path = os.environ.get("SEQ2TENS_DATA")
    if not path:
        pytest.skip("SEQ2TENS_DATA is not set")
    return path


@pytest.fixture
def bundle_only(monkeypatch):
    """No data folder, and no way to the network."""
    monkeypatch.delenv("SEQ2TENS_DATA", raising=False)
    monkeypatch.setattr(socket, "socket", None)


def described(split):
    train, test = split
    lengths = np.concatenate([train.sequences.lengths, test.sequences.lengths])
    classes = np.union1d(train.labels, test.labels)
    return len(train), len(test), train.sequences.n_channels, lengths.min(), lengths.max(), len(classes)


@pytest.mark.data("tsc")
@pytest.mark.parametrize("name", TSC)
def test_packed_sets_are_as_their_table_says(folder, name):
    assert described(load_dataset(name)) == TSC[name]


@pytest.mark.data("ucr", "uea")
@pytest.mark.parametrize("name", OTHERS)
def test_sets_of_other_archives_are_as_their_table_says(folder, name):
    assert described(load_dataset(name)) == OTHERS[name]


@pytest.mark.data("ucr")
def test_missing_values_stay_missing(folder):
    gaps = [int(np.isnan(half.sequences.values).sum()) for half in load_dataset("DodgerLoopWeekend")]
    assert sum(gaps) == 337


@pytest.mark.data("tsc")
def test_japanese_vowels_are_the_same_in_folder_and_bundle(folder, monkeypatch):
    packed = load_dataset("JapaneseVowels", folder)
    monkeypatch.delenv("SEQ2TENS_DATA")
    for one, other in zip(packed, load_dataset("JapaneseVowels"), strict=True):
        assert one.labels.tolist() == other.labels.tolist()
        np.testing.assert_array_equal(one.sequences.offsets, other.sequences.offsets)
        np.testing.assert_array_equal(one.sequences.values, other.sequences.values.astype(np.float32))


@pytest.mark.usefixtures("bundle_only")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JapaneseVowels", (270, 370, 12, 7, 29, 9)),
        ("BasicMotions", (40, 40, 6, 100, 100, 4)),
        ("ArrowHead", (36, 175, 1, 251, 251, 3)),
        ("PickupGestureWiimoteZ", (50, 50, 1, 29, 361, 10)),
    ],
)
def test_bundled_sets_need_no_network(name, expected):
    assert described(load_dataset(name)) == expected


@pytest.mark.usefixtures("bundle_only")
def test_labels_are_as_found():
    assert set(load_dataset("BasicMotions").train.labels) == {"Standing", "Running", "Walking", "Badminton"}


def pack(folder, name, archive="tsc", label="only"):
    (folder / archive).mkdir(exist_ok=True)
    np.savez(
        folder / archive / f"{name}.npz",
        X=np.zeros((2, 1)),
        offsets=np.arange(3),
        y=np.array([0, 0]),
        classes=np.array([label]),
        n_train=1,
    )


@pytest.mark.usefixtures("bundle_only")
def test_the_folder_wins(tmp_path, monkeypatch):
    pack(tmp_path, "GunPoint")
    assert len(load_dataset("GunPoint").train) == 50
    assert load_dataset("GunPoint", tmp_path).train.labels.tolist() == ["only"]
    assert len(read_npz(tmp_path / "tsc" / "GunPoint.npz").test) == 1
    monkeypatch.setenv("SEQ2TENS_DATA", str(tmp_path))
    assert load_dataset("GunPoint").train.labels.tolist() == ["only"]
    assert "JapaneseVowels" in available_datasets()


@pytest.mark.usefixtures("bundle_only")
def test_the_first_archive_wins(tmp_path):
    for archive in ("uea", "ucr", "tsc"):
        pack(tmp_path, "GunPoint", archive, label=archive)
        pack(tmp_path, f"of {archive}", archive)

    def first(**options):
        return load_dataset("GunPoint", tmp_path, **options).train.labels[0]

    assert first() == "tsc"
    assert first(archives=("ucr", "uea")) == "ucr"
    assert first(archives=("uea", "ucr")) == "uea"
    assert {"of tsc", "of ucr", "of uea"} < set(available_datasets(tmp_path))
    assert {"of ucr", "of uea"}.isdisjoint(available_datasets(tmp_path, archives=("tsc",)))


def message(*arguments, **options):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        load_dataset(*arguments, **options)
    return str(raised.value)


@pytest.mark.usefixtures("bundle_only")
def test_unknown_names_list_what_there_is(tmp_path, monkeypatch):
    known = ", ".join(available_datasets())
    assert "ArrowHead, BasicMotions" in known
    assert message("../x") == f"`name` must be one of {known}, got '../x'"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pack(tmp_path, "Mine")
    hint = "; more come with aeon: pip install aeon"
    assert message("X", tmp_path) == f"`name` must be one of Mine, got 'X'{hint}"
    assert message("X") == f"`name` must be one of nothing (no folder given), got 'X'{hint}"


@pytest.mark.usefixtures("bundle_only")
def test_archives_are_known(tmp_path):
    expected = "`archives` must be one of 'tsc', 'ucr', 'uea', got 'UCR'; did you mean 'ucr'?"
    assert message("GunPoint", tmp_path, archives=("UCR",)) == expected


@pytest.mark.usefixtures("bundle_only")
def test_folders_must_exist(monkeypatch):
    assert message("X", "/no/where") == "`folder` must be a folder that exists, got '/no/where'"
    monkeypatch.setenv("SEQ2TENS_DATA", "/no/where")
    assert message("X") == "`SEQ2TENS_DATA` must be a folder that exists, got '/no/where'"


@pytest.mark.parametrize("name", ["healing_mnist", "mnist", "physionet2012", "sprites"])
def test_modules_of_data_sets_are_found_under_their_old_names(name):
    moved = importlib.import_module(f"seq2tens.data.datasets.{name}")
    assert importlib.import_module(f"seq2tens.data.{name}") is moved
    assert getattr(data, name) is moved
