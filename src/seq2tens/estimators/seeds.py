"""Seeds from scikit-learn's `random_state`."""

from __future__ import annotations

import numpy as np

from seq2tens._checks import require

RandomState = int | np.random.RandomState | None


def seed_of(random_state: RandomState) -> int:
    """Return a seed: the integer itself, the next draw of a generator, or, for None, one from the system.

    Unlike in scikit-learn, None does not stand for numpy's global generator.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            f"`random_state` must be None, an integer or a numpy RandomState, got {random_state!r}"
        )
    require(random_state >= 0, f"`random_state` must be at least 0, got {random_state}")
    return int(random_state)


def repeatable_seed(random_state: RandomState, checkpoint: object) -> int:
    """Return `seed_of(random_state)`; with a checkpoint it must be an integer, so that a run can resume."""
    require(
        checkpoint is None or isinstance(random_state, int | np.integer),
        "`random_state` must be an integer if there is a `checkpoint`, since a second call would otherwise "
        f"not be the same run, got {random_state!r}",
    )
    return seed_of(random_state)
