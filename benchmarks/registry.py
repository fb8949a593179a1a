"""What is measured: a case is a set of contenders for the same work, one of them the peer of the ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Work = Callable[[], object]  # one call is one measurement
Prepare = Callable[[], Work]  # makes inputs and outputs, which are not measured


@dataclass(frozen=True)
class Case:
    """Contenders by name; `peer` names the one that the others are divided by."""

    suite: str
    name: str
    peer: str
    contenders: dict[str, Prepare]
    memory: bool = False  # measure peak memory too, each contender in a process of its own
    latency: bool = False  # time single calls too, for their percentiles
    shares: dict[str, float] = field(
        default_factory=dict
    )  # of the work, where a contender does a sample of it


SUITES: dict[str, Callable[[], Iterator[Case]]] = {}


def suite(function: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    """Register a generator of cases under its function's name."""
    SUITES[function.__name__] = function
    return function


def cases(names: list[str]) -> list[Case]:
    """All cases of the suites named, or of every suite."""
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
