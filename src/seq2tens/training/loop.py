"""The training loop: each epoch takes the state to the next one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from seq2tens.distributed import Peers
from seq2tens.training import rng
from seq2tens.training.ema import EMA
from seq2tens.training.losses import Loss, LossFunction
from seq2tens.training.metrics import MeanLoss, Metric, NonFiniteLoss, validate
from seq2tens.training.progress import Progress
from seq2tens.training.recipe import Recipe
from seq2tens.training.sampling import Sampler
from seq2tens.training.sources import Source
from seq2tens.training.state import Row, Snapshot, State

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Losses are read once in this many batches, so that not every batch waits for the device.
LOSS_INTERVAL = 50


@dataclass(frozen=True)
class Result:
    """The result of a training run, apart from the weights of the model.

    `history` has one row per epoch: `epoch`, `train_loss`, `validation_…`, `rate` (at the epoch's start) and
    `seconds`. `stopped` is `"epochs"`, `"patience"` or `"interrupted"`.
    """

    history: Sequence[Row]
    best_epoch: int | None
    stopped: str

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return len(self.history)

    @property
    def best(self) -> Row | None:
        """The row of the best epoch."""
        return None if self.best_epoch is None else self.history[self.best_epoch - 1]


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C after the first epoch; the model has the weights of a run that ended there."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted after epoch {result.epochs}")
        self.result = result


@dataclass(eq=False)
class Loop:
    """A model, its data and its recipe, ready to be trained epoch by epoch."""

    model: nn.Module
    loss: LossFunction
    train: Source
    recipe: Recipe
    seed: int
    fabric: Fabric
    validation: Source | None
    metrics: Mapping[str, Metric]
    last: Snapshot | None = field(default=None, init=False)  # the state at the end of the last epoch

    def __post_init__(self) -> None:
        model, recipe, precision = self.model, self.recipe, self.fabric.strategy.precision
        self.sampler = Sampler(recipe, self.train)
        self.peers = Peers() if self.fabric.world_size > 1 else None
        # Fused kernels are several times faster on small tensors, but Fabric cannot clip what they unscale.
        optimizer = make_optimizer(model, recipe, fused=precision.precision != "16-mixed")
        self.module, self.optimizer = self.fabric.setup(model, optimizer)
        steps = recipe.epochs * self.sampler.n_batches
        schedule = recipe.schedule.build(optimizer, steps, recipe.mode)
        ema = None if recipe.average is None else EMA(model, recipe.average)
        self.state = State(model, optimizer, schedule, ema, precision)

    def epoch(self, progress: Progress) -> Row:
        """Train one epoch, validate, and update the state."""
        begin, number = time.perf_counter(), self.state.epoch + 1
        rate = self.state.optimizer.param_groups[0]["lr"]
        row: Row = {"epoch": number, "train_loss": self._train(number, progress)}
        row |= self._validate() | {"rate": rate, "seconds": time.perf_counter() - begin}
        # All processes must take the same decisions, but their measurements may differ in the last digit.
        row = self.fabric.broadcast(row)
        scheduler = self.state.scheduler
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(row[self.recipe.monitor])
        elif scheduler is not None and not self.recipe.schedule.per_step:
            scheduler.step()
        self.state.record(row, self.recipe)
        self.last = self.state.snapshot()
        return row

    def _train(self, number: int, progress: Progress) -> float:
        rng.seed_noise(self.seed, number, self.fabric.global_rank, self.fabric.device)
        mean = MeanLoss(self.fabric, number)
        self.module.train()
        for i, rows in enumerate(self.sampler.epoch(rng.shuffling_generator(self.seed, number)), start=1):
            mean.add(self._step(rows))
            if i % LOSS_INTERVAL == 0:
                progress.advance(mean.flush())
        progress.advance(mean.flush())
        self._check_weights(number)
        return mean.mean()

    def _step(self, rows: Tensor) -> Loss:
        loss = self._loss(rows)
        self.fabric.backward(self._scaled_loss(loss))
        if self.recipe.clip_norm is not None:
            self.fabric.clip_gradients(
                self.module, self.optimizer, max_norm=self.recipe.clip_norm, error_if_nonfinite=False
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.recipe.schedule.per_step:
            self.state.scheduler.step()  # type: ignore[union-attr, call-arg]
        if self.state.ema is not None:
            self.state.ema.update()
        return loss

    def _loss(self, rows: Tensor) -> Loss:
        """Return the loss of this process's part of the batch.

        If a batch has fewer rows than there are processes, those without a row use one with weight 0, because
        all processes must take part in the exchange of statistics and gradients.
        """
        local = rows[self.fabric.global_rank :: self.fabric.world_size]
        present = len(local) > 0
        with nullcontext() if present or self.peers is None else self.peers.absent():
            batch = self.fabric.to_device(self.train.batch(local if present else rows[:1]))
            loss = Loss(*self.loss(self.module, batch))
        return loss if present else loss._replace(weight=0.0)

    def _scaled_loss(self, loss: Loss) -> Tensor:
        """Scale the loss: the mean over processes, whose weights differ, becomes the mean over all rows."""
        if self.fabric.world_size == 1:
            return loss.mean
        weight = torch.tensor(loss.weight, dtype=torch.float64, device=self.fabric.device)
        total: Any = self.fabric.all_reduce(weight.clone(), reduce_op="sum")
        return loss.mean * (weight * self.fabric.world_size / total).to(loss.mean.dtype)

    def _validate(self) -> dict[str, float]:
        if self.validation is None:
            return {}
        with nullcontext() if self.state.ema is None else self.state.ema.in_place():
            return validate(
                self.module, self.loss, self.validation, self.metrics, self.fabric, self.sampler.size
            )

    def _check_weights(self, number: int) -> None:
        """Require finite weights: a finite loss may have an infinite gradient, and the weights are saved."""
        for name, parameter in self.state.model.named_parameters():
            if not bool(parameter.isfinite().all()):
                raise NonFiniteLoss(
                    f"weights must be finite, got NaN or infinity in {name!r} after epoch {number}, batch "
                    f"{self.sampler.n_batches} (its last); checkpoints of earlier epochs are kept"
                )


def make_optimizer(model: nn.Module, recipe: Recipe, *, fused: bool) -> Optimizer:
    """Return the recipe's optimiser for all trainable parameters."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    cls = Adam if recipe.optimizer == "adam" else AdamW
    return cls(
        parameters, lr=recipe.learning_rate, eps=recipe.eps, weight_decay=recipe.weight_decay, fused=fused
    )
