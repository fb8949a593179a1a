import os

import numpy as np
import pytest

from data.datasets.stays import described, pack, rows_of, write_sets
from seq2tens.data import Labelled, Sequences, physionet2012

HOURS = (
    "00:07,HR,73",
    "00:40,HR,75",
    "01:00,HR,80",
    "01:00,HR,82",
    "03:00,MechVent,1",
    "47:59,Temp,36",
    "48:00,Temp,39",
)
STAYS = {"a": {11: described(11, *HOURS, weight=80)}, "b": {12: described(12, "02:30,GCS,15")}}
DEATHS = {11: 1, 12: 0}


@pytest.fixture(params=["text", "packed"])
def folder(request, tmp_path):
    if request.param == "text":
        write_sets(tmp_path, STAYS, DEATHS)
        return tmp_path
    for letter, texts in STAYS.items():
        rows = [row for text in texts.values() for row in rows_of(text)]
        pack(tmp_path, letter, rows, {record: DEATHS[record] for record in texts})
    return tmp_path


def test_hourly_means_of_one_set(folder):
    data = physionet2012.grid(physionet2012.load_set("a", folder).stays)
    assert data.truth.shape == (1, 48, 35)
    assert (data.ids.tolist(), data.labels.tolist()) == ([11], [1])
    assert data.channels == physionet2012.GRID_CHANNELS
    assert {"Weight", "MechVent"} == set(physionet2012.CHANNELS) - set(data.channels)
    heart, temperature = (data.channels.index(name) for name in ("HR", "Temp"))
    expected = np.full((1, 48, 35), np.nan)
    expected[0, :2, heart] = [74, 81]
    expected[0, 47, temperature] = 36
    np.testing.assert_array_equal(data.with_nan, expected)


def test_last_values_of_an_hour(folder):
    """Of an hour, and of a minute in which there are two."""
    data = physionet2012.grid(physionet2012.load_set("a", folder, pick="last").stays, pick="last")
    heart = data.channels.index("HR")
    assert data.truth[0, :2, heart].tolist() == [75, 82]
    assert physionet2012.grid(physionet2012.load_set("a", folder).stays, pick="last").truth[0, 1, heart] == 81


def test_other_grids(folder):
    stays = physionet2012.load_set("a", folder).stays
    data = physionet2012.grid(stays, hours=49, channels=("Temp", "Weight"))
    assert data.truth[0, 47, 0] == 36
    assert data.truth[0, 48, 0] == 39
    assert data.truth[0, 0, 1] == 80
    assert data.observed.sum() == 3


def test_refused(folder):
    stays = physionet2012.load_set("b", folder).stays
    with pytest.raises(ValueError, match="`letter` must be one of 'a', 'b', 'c', got 'd'"):
        physionet2012.load_set("d", folder)
    with pytest.raises(ValueError, match=r"must hold (set-c|the file physionet_c.npz)"):
        physionet2012.load_set("c", folder)
    with pytest.raises(ValueError, match="`channels` must be among those of `stays`, got 'Mood'"):
        physionet2012.grid(stays, channels=("Mood",))
    with pytest.raises(ValueError, match="`pick` must be one of 'mean', 'last', got 'first'"):
        physionet2012.grid(stays, pick="first")
    with pytest.raises(ValueError, match="`pick` must be one of 'mean', 'last', got 'first'"):
        physionet2012.load_set("b", folder, pick="first")
    with pytest.raises(ValueError, match="`hours` must be at least 1, got 0"):
        physionet2012.grid(stays, hours=0)
    timeless = Labelled(Sequences(np.ones((1, 35)), np.array([0, 1])), channels=physionet2012.GRID_CHANNELS)
    with pytest.raises(ValueError, match="`stays` must have times, in hours, got None"):
        physionet2012.grid(timeless)


@pytest.mark.data("physionet2012")
def test_real_set():
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    records = physionet2012.load_set("a")
    data = physionet2012.grid(records.stays)
    assert data.truth.shape == (3997, 48, 35)
    assert len(records.left_out) == 3
    assert data.labels.mean() == pytest.approx(0.1386, abs=1e-4)
    assert data.observed.mean() == pytest.approx(0.195, abs=0.001)


# Means and deviations that the published preparation of BRITS divides by.
BRITS = {
    "DiasABP": (59.540976152469405, 13.01436781437145),
    "HR": (86.72320413227443, 17.789923096504985),
    "Na": (139.06972964987443, 5.185595006246348),
    "NIDiasABP": (58.13833409690321, 15.06074282896952),
    "PaO2": (147.4835678885565, 85.96290370390257),
    "ALT": (394.8899400819931, 1201.033856726966),
}


@pytest.mark.data("physionet2012")
def test_real_set_is_that_of_brits():
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    data = physionet2012.grid(physionet2012.load_set("a", pick="last").stays, pick="last")
    assert data.truth.shape == (3997, 48, 35)
    for name, expected in BRITS.items():
        channel = data.channels.index(name)
        seen = data.truth[..., channel][data.observed[..., channel]].astype(np.float64)
        assert (seen.mean(), seen.std()) == pytest.approx(expected, rel=1e-9)
