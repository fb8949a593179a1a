"""Seeds from scikit-learn's `random_state`."""

from __future__ import annotations

import numpy as np

from seq2tens._checks import require

RandomState = int | np.random.RandomState | None


def seed_of(random_state: RandomState) -> int:
    """A seed: of the integer always the same, of a generator its next draw, of None one from the system.

    None does not stand for numpy's global generator, which is left alone.
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
    """`seed_of`; where there is a checkpoint, of an integer only, or a second call would be another run."""
    require(
        checkpoint is None or isinstance(random_state, int | np.integer),
        "`random_state` must be an integer where there is a `checkpoint`, or a second call would not "
        f"be the same run, got {random_state!r}",
    )
    return seed_of(random_state)
