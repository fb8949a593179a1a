"""The state of a training run, and snapshots to go back to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.optim import Optimizer

from seq2tens._storage import Tensors
from seq2tens.training.ema import EMA
from seq2tens.training.recipe import Recipe
from seq2tens.training.schedules import Scheduler

if TYPE_CHECKING:
    from lightning_fabric.plugins import Precision

Row = dict[str, float]
Snapshot = dict[str, Any]


@dataclass
class State:
    """Everything that the next epoch depends on. Randomness only depends on the seed and the epoch."""

    model: nn.Module
    optimizer: Optimizer
    scheduler: Scheduler
    ema: EMA | None
    precision: Precision
    history: list[Row] = field(default_factory=list)
    best: Tensors = field(default_factory=dict)
    best_epoch: int | None = None
    stopped: str | None = None

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.history)

    def result_weights(self) -> Tensors:
        """Return a copy of the current weights, or of their average if there is one."""
        return _copy((self.model if self.ema is None else self.ema.averaged.module).state_dict())

    def record(self, row: Row, recipe: Recipe) -> None:
        """Add an epoch to the history; keep its weights if it is the best so far."""
        best = None if self.best_epoch is None else self.history[self.best_epoch - 1][recipe.monitor]
        self.history.append(row)
        if recipe.better(row[recipe.monitor], best):
            self.best_epoch = self.epoch
            if recipe.keep_best:
                self.best = self.result_weights()
        self.stopped = self._stop_reason(recipe)

    def _stop_reason(self, recipe: Recipe) -> str | None:
        if recipe.patience is not None and self.epoch - (self.best_epoch or 0) >= recipe.patience:
            return "patience"
        return "epochs" if self.epoch >= recipe.epochs else None

    def finish(self) -> None:
        """Load the resulting weights into the model, and put it in evaluation mode."""
        self.model.load_state_dict(self.best or self.result_weights())
        self.model.eval()

    def snapshot(self) -> Snapshot:
        """Return a copy of the whole state, in main memory."""
        return {
            "model": _copy(self.model.state_dict()),
            "ema": None if self.ema is None else _copy(self.ema.averaged.state_dict()),
            "optimizer": _copy(self.optimizer.state_dict()),
            "scheduler": None if self.scheduler is None else _copy(self.scheduler.state_dict()),
            "precision": _copy(self.precision.state_dict()),
            "history": list(self.history),
            "best": self.best,
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, which is not changed."""
        self.model.load_state_dict(snapshot["model"])
        if self.ema is not None:
            self.ema.averaged.load_state_dict(snapshot["ema"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(snapshot["scheduler"])
        # The optimiser would change the tensors that it is given in place.
        self.optimizer.load_state_dict(_copy(snapshot["optimizer"]))
        self.precision.load_state_dict(snapshot["precision"])
        self.history, self.best = list(snapshot["history"]), snapshot["best"]
        self.best_epoch, self.stopped = snapshot["best_epoch"], snapshot["stopped"]


def _copy(tree: Any) -> Any:
    """Return the same dicts, lists and tuples with copies of the tensors, no two of which share memory."""
    if isinstance(tree, Tensor):
        return tree.detach().to("cpu", copy=True).contiguous()
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return type(tree)(map(_copy, tree)) if isinstance(tree, list | tuple) else tree
