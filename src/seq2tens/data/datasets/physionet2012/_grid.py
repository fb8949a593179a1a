"""Stays on an hourly grid, as used to evaluate imputation."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens._checks import choice, positive_int, require
from seq2tens.data.datasets.physionet2012._measurements import CHANNELS, Pick, picked
from seq2tens.data.incomplete import Incomplete
from seq2tens.data.labelled import Labelled

# The 35 variables of the published imputation experiments (BRITS, GP-VAE).
GRID_CHANNELS = tuple(name for name in CHANNELS if name not in ("Weight", "MechVent"))


def grid(
    stays: Labelled, hours: int = 48, channels: tuple[str, ...] = GRID_CHANNELS, *, pick: Pick = "mean"
) -> Incomplete:
    """Put stays on a grid with one step per hour since admission: the mean of its values, or the last one.

    Values are not scaled. Measurements at the end of the last hour, or later, are left out.

    Args:
        stays: stays with times in hours, such as a part of `load` or the stays of `load_set`.
        hours: number of steps.
        channels: the variables to keep (default: the 35 of the published experiments; not `Weight` and
            `MechVent`).
        pick: `"mean"` or `"last"`, the value used for an hour. The data of BRITS, on which published
            imputations are evaluated, are `grid(load_set("a", pick="last").stays, pick="last")`.
    """
    positive_int("hours", hours)
    choice("pick", pick, ("mean", "last"))
    names = stays.channels or ()
    for name in channels:
        require(name in names, f"`channels` must be among those of `stays`, got {name!r}")
    values = _hourly(stays, hours, pick)[:, :, [names.index(name) for name in channels]]
    return Incomplete.from_array(values, labels=stays.labels, ids=stays.ids, channels=channels)


def _hourly(stays: Labelled, hours: int, pick: Pick) -> Float[np.ndarray, "stays hours channels"]:
    sequences = stays.sequences
    require(sequences.times is not None, "`stays` must have times, in hours, got None")
    hour = np.floor(np.asarray(sequences.times)).astype(np.int64)
    require(bool((hour >= 0).all()), f"`stays` must have times of at least 0, got {hour.min(initial=0)}")
    stay = np.repeat(np.arange(len(stays)), sequences.lengths)
    step, channel = np.nonzero(~np.isnan(sequences.values) & (hour < hours)[:, None])
    shape = (len(stays), hours, sequences.n_channels)
    entry = np.ravel_multi_index((stay[step], hour[step], channel), shape)
    return picked(entry, sequences.values[step, channel], int(np.prod(shape)), pick).reshape(shape)
