"""The common form of both file layouts: a list of measurements, gathered into one row per time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from seq2tens._checks import choice
from seq2tens.data import _packed
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences

# Which value to use if there are several of a parameter at one time, or within one hour.
Pick = Literal["mean", "last"]
DESCRIPTORS = ("RecordID", "Age", "Gender", "Height", "ICUType")
# fmt: off
CHANNELS = (
    "Weight", "GCS", "HR", "NIDiasABP", "NIMAP", "NISysABP", "RespRate", "Temp", "Urine", "HCT",
    "BUN", "Creatinine", "Glucose", "HCO3", "Mg", "Platelets", "K", "Na", "WBC", "pH", "PaCO2",
    "PaO2", "DiasABP", "FiO2", "MAP", "MechVent", "SysABP", "SaO2", "Albumin", "ALP", "ALT", "AST",
    "Bilirubin", "Lactate", "Cholesterol", "TroponinI", "TroponinT",
)
# fmt: on
ICU_TYPES = (1, 2, 3, 4)
STATIC = ("Age", "Gender", "Height", *(f"ICUType={kind}" for kind in ICU_TYPES))
# A parameter's number: descriptors first, then channels.
NUMBERS = {name: number for number, name in enumerate((*DESCRIPTORS, *CHANNELS))}
FIRST_CHANNEL = len(DESCRIPTORS)
WEIGHT = NUMBERS["Weight"]
UNKNOWN = -1
# More minutes than any stay has: `stay * HORIZON + minute` sorts by stay, then by time.
HORIZON = 10**6


@dataclass(frozen=True)
class Skipped:
    """A stay that could not be read; `line` is None if the whole file is at fault."""

    record: int
    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Measurements:
    """One entry per line of the files, in order; `parameter` is a number of `NUMBERS`."""

    record: Int[np.ndarray, " entries"]
    minute: Int[np.ndarray, " entries"]
    parameter: Int[np.ndarray, " entries"]
    value: Float[np.ndarray, " entries"]

    def __getitem__(self, chosen: np.ndarray) -> Measurements:
        return Measurements(
            self.record[chosen], self.minute[chosen], self.parameter[chosen], self.value[chosen]
        )


@dataclass(frozen=True, eq=False)
class Records:
    """Stays as they were read.

    Attributes:
        stays: stays with a time series, in the order of their record numbers.
        left_out: record numbers of stays without a time series.
        skipped: stays that could not be read, and why.
        repeated: number of values beyond the first of a parameter at one time.
    """

    stays: Labelled
    left_out: Int[np.ndarray, " stays"]
    skipped: tuple[Skipped, ...] = ()
    repeated: int = 0

    @classmethod
    def concatenate(cls, parts: Sequence[Records]) -> Records:
        """Concatenate sets of stays."""
        stays = [part.stays for part in parts]
        labels = [part.labels for part in stays if part.labels is not None]
        ids = [part.ids for part in stays if part.ids is not None]
        sequences = Sequences.concatenate([part.sequences for part in stays])
        return cls(
            Labelled(sequences, np.concatenate(labels) if labels else None, np.concatenate(ids), CHANNELS),
            np.concatenate([part.left_out for part in parts]),
            tuple(skipped for part in parts for skipped in part.skipped),
            sum(part.repeated for part in parts),
        )


def gather(
    measurements: Measurements,
    deaths: dict[int, int] | None,
    skipped: tuple[Skipped, ...] = (),
    pick: Pick = "mean",
) -> Records:
    """Group the measurements by stay and time.

    If a parameter has several values at one time, the mean is used, as for the published baselines of
    mortality prediction, or the last one of the file, as for those of imputation.
    """
    choice("pick", pick, ("mean", "last"))
    ids = np.unique(measurements.record)
    series = _known_series(measurements)
    has_series = np.isin(ids, series.record[series.parameter != WEIGHT])
    with_series = ids[has_series]
    sequences, repeated = _sequences(
        series[np.isin(series.record, with_series)], with_series, _static(measurements, with_series), pick
    )
    labels = (
        None
        if deaths is None
        else np.array([deaths[record] for record in with_series.tolist()], dtype=np.int64)
    )
    return Records(Labelled(sequences, labels, with_series, CHANNELS), ids[~has_series], skipped, repeated)


def _known_series(measurements: Measurements) -> Measurements:
    return measurements[(measurements.parameter >= FIRST_CHANNEL) & (measurements.value != UNKNOWN)]


def _sequences(
    series: Measurements, ids: np.ndarray, static: Float[np.ndarray, "stays features"], pick: Pick
) -> tuple[Sequences, int]:
    """Return sequences with one step per distinct time, and the number of repeated values."""
    stay = np.searchsorted(ids, series.record)
    moments, step = np.unique(stay * HORIZON + series.minute, return_inverse=True)
    entry = step * len(CHANNELS) + series.parameter - FIRST_CHANNEL
    values = picked(entry, series.value, len(moments) * len(CHANNELS), pick)
    offsets = _packed.offsets_of(np.bincount(moments // HORIZON, minlength=len(ids)))
    table = values.reshape(len(moments), len(CHANNELS))
    return Sequences(table, offsets, moments % HORIZON / 60, static), len(entry) - len(np.unique(entry))


def picked(
    entry: Int[np.ndarray, " values"], values: Float[np.ndarray, " values"], size: int, pick: Pick
) -> Float[np.ndarray, " size"]:
    """Return the mean or the last of the values of each of `size` entries; NaN if there are none."""
    if pick == "last":
        table = np.full(size, np.nan, dtype=np.float32)
        table[entry] = values  # for a repeated index, the last assignment counts
        return table
    with np.errstate(invalid="ignore"):  # 0/0 is NaN: nothing was measured
        means = np.bincount(entry, values, minlength=size) / np.bincount(entry, minlength=size)
    return means.astype(np.float32)


def _static(measurements: Measurements, ids: np.ndarray) -> Float[np.ndarray, "stays features"]:
    described = measurements[(measurements.parameter < FIRST_CHANNEL) & np.isin(measurements.record, ids)]
    table = np.full((len(ids), FIRST_CHANNEL), np.nan, dtype=np.float32)
    table[np.searchsorted(ids, described.record), described.parameter] = described.value
    table[table == UNKNOWN] = np.nan
    kind = table[:, [NUMBERS["ICUType"]]]
    one_hot = np.where(np.isnan(kind), np.nan, kind == np.array(ICU_TYPES))
    return np.concatenate([table[:, 1:4], one_hot.astype(np.float32)], axis=1)
