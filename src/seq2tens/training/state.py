"""What changes while training, and its way into a checkpoint and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from seq2tens.training.averaging import Average
from seq2tens.training.checkpoint import Saved, Tensors
from seq2tens.training.recipe import Recipe
from seq2tens.training.schedules import Scheduler

if TYPE_CHECKING:
    from lightning_fabric.plugins import Precision

FORMAT = 1
Row = dict[str, float]


@dataclass
class State:
    """Everything that the next epoch depends on. Its randomness depends on seed and epoch only."""

    model: nn.Module
    optimizer: Optimizer
    scheduler: Scheduler
    average: Average | None
    precision: Precision
    history: list[Row] = field(default_factory=list)
    best: Tensors = field(default_factory=dict)
    best_epoch: int | None = None
    stopped: str | None = None

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return len(self.history)

    def result_weights(self) -> Tensors:
        """The weights that would be the result now."""
        return weights(self.model if self.average is None else self.average.averaged.module)

    def note(self, row: Row, recipe: Recipe) -> None:
        """Add an epoch to the history; keep its weights if it is the best so far."""
        best = None if self.best_epoch is None else self.history[self.best_epoch - 1][recipe.monitor]
        self.history.append(row)
        if recipe.better(row[recipe.monitor], best):
            self.best_epoch = self.epoch
            if recipe.keep_best:
                self.best = self.result_weights()
        self.stopped = self._reason(recipe)

    def _reason(self, recipe: Recipe) -> str | None:
        if recipe.patience is not None and self.epoch - (self.best_epoch or 0) >= recipe.patience:
            return "patience"
        return "epochs" if self.epoch >= recipe.epochs else None

    def finish(self) -> None:
        """Give the model the weights that are the result."""
        self.model.load_state_dict(self.best or self.result_weights())
        self.model.eval()

    def capture(self) -> Saved:
        """A copy that goes into a checkpoint."""
        slots, groups = split_optimizer(self.optimizer.state_dict())
        parts = {"model": weights(self.model), "best": self.best, "optimizer": slots}
        if self.average is not None:
            parts["average"] = weights(self.average.averaged)
        document = {
            "format": FORMAT,
            "epoch": self.epoch,
            "history": list(self.history),
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
            "groups": groups,
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "precision": self.precision.state_dict(),
        }
        return Saved(join(parts), document)

    def restore(self, saved: Saved) -> None:
        """Go back to what was captured."""
        parts, document = split(saved.tensors), saved.document
        self.model.load_state_dict(parts["model"])
        if self.average is not None:
            self.average.averaged.load_state_dict(parts["average"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(document["scheduler"])
        self.optimizer.load_state_dict(join_optimizer(parts.get("optimizer", {}), document["groups"]))
        self.precision.load_state_dict(document["precision"])
        self.best = parts.get("best", {})
        self.history, self.best_epoch = document["history"], document["best_epoch"]
        self.stopped = document["stopped"]


def weights(module: nn.Module) -> Tensors:
    """A copy of a module's parameters and buffers in main memory; no two share theirs."""
    return {name: _copy(tensor) for name, tensor in module.state_dict().items()}


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


def join(parts: Mapping[str, Tensors]) -> Tensors:
    """One dictionary, names prefixed with their part's."""
    return {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def split(tensors: Tensors) -> dict[str, Tensors]:
    """Undo `join`; a part without tensors is absent."""
    parts: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = tensor
    return parts


def split_optimizer(state: dict[str, Any]) -> tuple[Tensors, list[dict[str, Any]]]:
    """The optimiser's tensors by parameter number and name, and the settings of its groups."""
    slots = {
        f"{number}/{name}": _copy(torch.as_tensor(value))
        for number, values in state["state"].items()
        for name, value in values.items()
    }
    return slots, state["param_groups"]


def join_optimizer(slots: Tensors, groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Undo `split_optimizer`; JSON has turned tuples into lists."""
    state: dict[int, Tensors] = {}
    for key, tensor in slots.items():
        number, _, name = key.partition("/")
        state.setdefault(int(number), {})[name] = tensor
    tuples = [{k: tuple(v) if k == "betas" else v for k, v in group.items()} for group in groups]
    return {"state": state, "param_groups": tuples}
