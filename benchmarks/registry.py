"""The registry of cases; a case is a set of contenders for the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Work = Callable[[], object]  # one call is one measurement
Prepare = Callable[[], Work]  # allocates inputs and outputs, which is not measured


@dataclass(frozen=True)
class Case:
    """A case with its contenders by name; times are divided by that of `peer`."""

    suite: str
    name: str
    peer: str
    contenders: dict[str, Prepare]
    memory: bool = False  # also measure peak memory, each contender in a separate process
    latency: bool = False  # also time single calls, for percentiles
    # The fraction of the work that a contender does, if it does only a sample.
    shares: dict[str, float] = field(default_factory=dict)


SUITES: dict[str, Callable[[], Iterator[Case]]] = {}


def suite(function: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    """Register a generator of cases under its function's name."""
    SUITES[function.__name__] = function
    return function


def cases(names: list[str]) -> list[Case]:
    """All cases of the named suites, or of every suite."""
    from benchmarks import (  # noqa: F401  (they register themselves)
        epochs,
        forward_table,
        images,
        intervals,
        kl,
        layer,
        maps,
        streaming,
    )

    unknown = set(names) - set(SUITES)
    if unknown:
        raise SystemExit(f"unknown suite {', '.join(sorted(unknown))}; there are: {', '.join(SUITES)}")
    return [case for name in names or SUITES for case in SUITES[name]()]
