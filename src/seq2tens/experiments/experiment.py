"""What an experiment is, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment with its command, its cost and what to expect of it.

    `datasets` and `models` are all that there are, in the order in which they are run.
    """

    name: str
    command: str
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    cost: str
    expected: str
