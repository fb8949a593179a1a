"""A run: epochs of steps, from a state to the next."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from seq2tens.distributed.synchronised import Peers
from seq2tens.training import randomness
from seq2tens.training.averaging import Average
from seq2tens.training.checkpoint import Saved
from seq2tens.training.losses import Loss, LossFunction
from seq2tens.training.meter import Meter, NonFiniteLoss
from seq2tens.training.progress import Progress
from seq2tens.training.recipe import Recipe
from seq2tens.training.sampling import Sampler
from seq2tens.training.sources import Source
from seq2tens.training.state import Row, State
from seq2tens.training.validation import Metric, validate

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Losses are looked at once in so many batches: a device need not be waited for in each.
LOOK_EVERY = 50


@dataclass(frozen=True)
class Result:
    """What a run leaves behind, besides the model's weights.

    `history` has one row per epoch: `epoch`, `train_loss`, `validation_…`, `rate` (at the epoch's start) and
    `seconds`. `stopped` is `"epochs"`, `"patience"` or `"interrupted"`.
    """

    history: Sequence[Row]
    best_epoch: int | None
    stopped: str

    @property
    def epochs(self) -> int:
        """The number of epochs trained."""
        return len(self.history)

    @property
    def best(self) -> Row | None:
        """The row of the best epoch."""
        return None if self.best_epoch is None else self.history[self.best_epoch - 1]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C after the first epoch: the model has the weights of `result`, as if the run had ended there."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted after epoch {result.epochs}")
        self.result = result


class Run:
    """A model, its data and its recipe, ready to be trained epoch by epoch."""

    def __init__(
        self,
        model: nn.Module,
        loss: LossFunction,
        train: Source,
        recipe: Recipe,
        seed: int,
        fabric: Fabric,
        validation: Source | None,
        metrics: Mapping[str, Metric],
    ) -> None:
        self.loss, self.train, self.recipe, self.seed, self.fabric = loss, train, recipe, seed, fabric
        self.validation, self.metrics = validation, metrics
        self.sampler = Sampler(recipe, train)
        self.peers = Peers() if fabric.world_size > 1 else None
        # Fused kernels are several times faster on small tensors, but Fabric cannot clip what they unscale.
        optimizer = make_optimizer(model, recipe, fused=fabric.strategy.precision.precision != "16-mixed")
        self.module, self.optimizer = fabric.setup(model, optimizer)
        steps = recipe.epochs * self.sampler.n_batches
        self.state = State(
            model,
            optimizer,
            recipe.schedule.build(optimizer, steps, recipe.mode),
            None if recipe.average is None else Average(model, recipe.average),
            fabric.strategy.precision,
        )
        self.kept: Saved | None = None  # the state at the end of the last epoch

    def epoch(self, progress: Progress) -> Row:
        """Train an epoch and validate; the state moves on."""
        begin, number = time.perf_counter(), self.state.epoch + 1
        rate = self.state.optimizer.param_groups[0]["lr"]
        row: Row = {"epoch": number, "train_loss": self._train(number, progress)}
        row |= self._validate() | {"rate": rate, "seconds": time.perf_counter() - begin}
        # Processes must decide alike, and what they measure may differ in the last digit.
        row = self.fabric.broadcast(row)
        scheduler = self.state.scheduler
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(row[self.recipe.monitor])
        elif scheduler is not None and not self.recipe.schedule.per_step:
            scheduler.step()
        self.state.note(row, self.recipe)
        self.kept = self.state.capture()
        return row

    def _train(self, number: int, progress: Progress) -> float:
        randomness.seed_noise(self.seed, number, self.fabric.global_rank, self.fabric.device)
        meter = Meter(self.fabric, number)
        self.module.train()
        for i, rows in enumerate(self.sampler.epoch(randomness.order(self.seed, number)), start=1):
            meter.add(self._step(rows))
            if i % LOOK_EVERY == 0:
                progress.advance(meter.flush())
        progress.advance(meter.flush())
        self._check_weights(number)
        return meter.mean()

    def _step(self, rows: Tensor) -> Loss:
        value = self._loss(rows)
        self.fabric.backward(self._shared(value))
        if self.recipe.clip_norm is not None:
            self.fabric.clip_gradients(
                self.module, self.optimizer, max_norm=self.recipe.clip_norm, error_if_nonfinite=False
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.recipe.schedule.per_step:
            self.state.scheduler.step()  # type: ignore[union-attr, call-arg]
        if self.state.average is not None:
            self.state.average.update()
        return value

    def _loss(self, rows: Tensor) -> Loss:
        """Of this process's part of the batch.

        Where a batch has fewer rows than there are processes, those without one take part with a row that
        counts for nothing: all of them have to meet in the exchange of statistics and gradients.
        """
        own = rows[self.fabric.global_rank :: self.fabric.world_size]
        present = len(own) > 0
        with nullcontext() if present or self.peers is None else self.peers.absent():
            batch = self.fabric.to_device(self.train.batch(own if present else rows[:1]))
            value = Loss(*self.loss(self.module, batch))
        return value if present else value._replace(weight=0.0)

    def _shared(self, value: Loss) -> Tensor:
        """Scaled such that the mean over processes, whose weights differ, is the mean over all rows."""
        if self.fabric.world_size == 1:
            return value.mean
        weight = torch.tensor(value.weight, dtype=torch.float64, device=self.fabric.device)
        total: Any = self.fabric.all_reduce(weight.clone(), reduce_op="sum")
        return value.mean * (weight * self.fabric.world_size / total).to(value.mean.dtype)

    def _validate(self) -> dict[str, float]:
        if self.validation is None:
            return {}
        given = self.module, self.loss, self.validation, self.metrics, self.fabric, self.sampler.size
        if self.state.average is None:
            return validate(*given)
        with self.state.average.in_place():
            return validate(*given)

    def _check_weights(self, number: int) -> None:
        """A finite loss may still have had an infinite gradient; such weights must not be saved."""
        for name, parameter in self.state.model.named_parameters():
            if not bool(parameter.isfinite().all()):
                raise NonFiniteLoss(
                    f"weights must be finite, got others in {name!r} after epoch {number}, batch "
                    f"{self.sampler.n_batches} (its last); checkpoints of earlier epochs are kept"
                )


def make_optimizer(model: nn.Module, recipe: Recipe, *, fused: bool) -> Optimizer:
    """The recipe's optimiser for every parameter that is trained."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    cls = Adam if recipe.optimizer == "adam" else AdamW
    return cls(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=fused)
