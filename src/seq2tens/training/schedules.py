"""Learning rate schedules: data for a recipe, and the torch scheduler that each describes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau

from seq2tens import _checks as check

Mode = Literal["min", "max"]


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A constant rate."""

    kind: ClassVar[str] = "constant"
    per_step: ClassVar[bool] = False

    def build(self, optimizer: Optimizer, steps: int, mode: Mode) -> None:
        """Return None: there is no scheduler."""


@dataclass(frozen=True, kw_only=True)
class Plateau:
    """Multiply the rate by `factor` after `patience` epochs without improvement of the recipe's monitor.

    The count starts again after each change. The rate stays at or above `floor`.
    """

    patience: int
    factor: float = 0.5
    floor: float = 0.0
    kind: ClassVar[str] = "plateau"
    per_step: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check.positive_int("patience", self.patience)
        check.between("factor", self.factor, 0, 1)
        check.between("floor", self.floor, 0, math.inf, low_included=True)

    def build(self, optimizer: Optimizer, steps: int, mode: Mode) -> ReduceLROnPlateau:
        """Return the scheduler.

        torch waits one epoch longer than its `patience`. Any improvement counts, however small.
        """
        return ReduceLROnPlateau(
            optimizer,
            mode,
            factor=self.factor,
            patience=self.patience - 1,
            threshold=0.0,
            threshold_mode="abs",
            min_lr=self.floor,
            eps=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class OneCycle:
    """One cycle: the rate rises from rate / `start` during `warmup`, then falls to rate / (`start` · `end`).

    `warmup` is a fraction of the steps. Meanwhile the first coefficient of Adam goes from 0.95 to 0.85 and
    back.
    """

    warmup: float = 0.3
    start: float = 25.0
    end: float = 1e4
    kind: ClassVar[str] = "one_cycle"
    per_step: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.between("warmup", self.warmup, 0, 1)
        check.between("start", self.start, 1, math.inf, low_included=True)
        check.between("end", self.end, 1, math.inf, low_included=True)

    def build(self, optimizer: Optimizer, steps: int, mode: Mode) -> OneCycleLR:
        """Return torch's schedule of that name over all steps."""
        rate = optimizer.param_groups[0]["lr"]
        return OneCycleLR(
            optimizer,
            rate,
            total_steps=steps,
            pct_start=self.warmup,
            div_factor=self.start,
            final_div_factor=self.end,
        )


@dataclass(frozen=True, kw_only=True)
class Cosine:
    """Linear warm-up during the fraction `warmup` of the steps, then cosine decay to `floor` · rate."""

    warmup: float = 0.05
    floor: float = 0.0
    kind: ClassVar[str] = "cosine"
    per_step: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.between("warmup", self.warmup, 0, 1, low_included=True)
        check.between("floor", self.floor, 0, 1, low_included=True)

    def build(self, optimizer: Optimizer, steps: int, mode: Mode) -> LambdaLR:
        """Return a scheduler with one factor per step."""
        return LambdaLR(optimizer, lambda step: self.at(step, steps))

    def at(self, step: int, steps: int) -> float:
        """Return the rate of a step relative to the highest rate."""
        rising = math.ceil(self.warmup * steps)
        if step < rising:
            return (step + 1) / rising
        done = (step - rising) / max(1, steps - rising)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * min(1.0, done))) / 2


@dataclass(frozen=True, kw_only=True)
class StepDecay:
    """Multiply the rate by `factor` after every `every` epochs; it stays at or above `floor` · rate."""

    every: int
    factor: float = 0.5
    floor: float = 0.0
    kind: ClassVar[str] = "stairs"
    per_step: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check.positive_int("every", self.every)
        check.between("factor", self.factor, 0, 1)
        check.between("floor", self.floor, 0, 1, low_included=True)

    def build(self, optimizer: Optimizer, steps: int, mode: Mode) -> LambdaLR:
        """Return a scheduler with one factor per epoch."""
        return LambdaLR(optimizer, lambda epoch: max(self.floor, self.factor ** (epoch // self.every)))


Schedule = Constant | Plateau | OneCycle | Cosine | StepDecay
Scheduler = LRScheduler | ReduceLROnPlateau | None
SCHEDULES: dict[str, type[Schedule]] = {
    cls.kind: cls for cls in (Constant, Plateau, OneCycle, Cosine, StepDecay)
}


def to_dict(schedule: Schedule) -> dict[str, Any]:
    """Return the schedule as JSON data, with its name under `kind`."""
    return {"kind": schedule.kind, **asdict(schedule)}


def from_dict(data: dict[str, Any]) -> Schedule:
    """Build a schedule from the data of `to_dict`."""
    rest = dict(data)
    kind = rest.pop("kind", None)
    check.choice("schedule.kind", kind, tuple(SCHEDULES))
    return check.from_fields(SCHEDULES[str(kind)], rest, "schedule")
