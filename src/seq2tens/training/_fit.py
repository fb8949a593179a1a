"""`fit`, the entry point of training. A module named `fit` would shadow the function in `training`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.distributed import synchronized
from seq2tens.ops import collectives
from seq2tens.training import rng
from seq2tens.training.callbacks import Callback
from seq2tens.training.checkpoint import FORMAT, Checkpoints
from seq2tens.training.loop import Interrupted, Loop, Result
from seq2tens.training.losses import LossFunction, check_honored
from seq2tens.training.metrics import Metric
from seq2tens.training.progress import Progress, ProgressStyle, make_progress
from seq2tens.training.recipe import Recipe
from seq2tens.training.sources import Source

if TYPE_CHECKING:
    from lightning_fabric import Fabric

PACKAGES = ("seq2tens", "torch", "lightning-fabric")


def fit(
    model: nn.Module,
    loss: LossFunction,
    train: Source,
    *,
    recipe: Recipe,
    seed: int,
    validation: Source | None = None,
    metrics: Mapping[str, Metric] | None = None,
    fabric: Fabric | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | Checkpoints | None = None,
    progress: ProgressStyle = "auto",
) -> Result:
    """Train a model in place; it ends in evaluation mode with the recipe's choice of weights.

    The result only depends on the arguments: batches and dropout are derived from `seed`, and torch's global
    generators are not changed. With a `checkpoint`, a run that was stopped at any moment continues when it is
    called again with the same arguments, and ends with the same weights.

    Ctrl-C (or any other `KeyboardInterrupt`) stops at once and goes back to the end of the last epoch, which
    is saved if there is a `checkpoint`. The model then has the weights that would be the result of a run that
    ends there, and `Interrupted`, a `KeyboardInterrupt` with the `result` so far, is raised. Before the end
    of the first epoch, or if several processes train together, the `KeyboardInterrupt` itself is raised.

    Args:
        model: any module; the loss must call it as `model(...)`.
        loss: `loss(model, batch)` returns the mean loss of a batch and the batch's weight, see `Loss`.
        train: source of the training batches.
        recipe: how to train.
        seed: seed of the order of the data and of dropout. The initial weights are those of the model.
        validation: data for `validation_loss` and for the metrics, measured after every epoch.
        metrics: `metric(*outputs)` is called with the outputs that the loss returns, joined over all batches.
        fabric: a Lightning Fabric for other devices, precisions or several processes (one model per process,
            all with the same arguments); by default one device. Several processes train like one with the
            same `batch_size`, except that each draws its own dropout.
        callbacks: called after every epoch.
        checkpoint: a folder, or `Checkpoints` to change the default intervals.
        progress: `"auto"` or True, `"bar"`, `"lines"`, `"silent"` or False.
    """
    _check_arguments(loss, recipe, seed, validation, metrics or {})
    fabric = fabric or _one_device()
    checkpoints = _as_checkpoints(checkpoint) if fabric.is_global_zero else None
    with rng.isolated(fabric.device):
        loop = Loop(model, loss, train, recipe, seed, fabric, validation, metrics or {})
        with ExitStack() as stack:
            _join(loop, stack)
            _resume(loop, checkpoints)
            _train(loop, checkpoints, _callbacks(loop, callbacks, progress, stack))
        loop.state.finish()
    result = Result(tuple(loop.state.history), loop.state.best_epoch, str(loop.state.stopped))
    if result.stopped == "interrupted":
        raise Interrupted(result)
    return result


def _train(loop: Loop, checkpoints: Checkpoints | None, watchers: list[Callback]) -> None:
    """Train the remaining epochs; after an interrupt, go back to the end of the last complete epoch."""
    try:
        _train_epochs(loop, checkpoints, watchers)
    except KeyboardInterrupt:
        _save(loop, checkpoints)
        if loop.last is None or loop.peers is not None:
            raise
        loop.state.restore(loop.last)  # the interrupted epoch has changed the weights
        loop.state.stopped = "interrupted"
        for watcher in watchers:
            watcher.interrupt()


def _train_epochs(loop: Loop, checkpoints: Checkpoints | None, watchers: list[Callback]) -> None:
    progress = next((w for w in watchers if isinstance(w, Progress)), Progress())
    while loop.state.stopped is None:
        row = loop.epoch(progress)
        for watcher in watchers:
            watcher.epoch(row, loop.state.model)
        if checkpoints is not None and (loop.state.stopped or checkpoints.due()):
            _save(loop, checkpoints)


def _save(loop: Loop, checkpoints: Checkpoints | None) -> None:
    """Save the state at the end of the last epoch, if there is one and if checkpoints are kept."""
    if checkpoints is None or loop.last is None:
        return
    checkpoints.write(len(loop.last["history"]), {**loop.last, **_identity(loop)})


def _join(loop: Loop, stack: ExitStack) -> None:
    """Synchronise with the other processes, if any, until the stack is closed."""
    if loop.peers is None:
        return
    stack.enter_context(synchronized(loop.state.model, loop.peers))
    runs = collectives.gather_objects(_identity(loop)["run"])
    for rank, other in enumerate(runs):
        rule = f"all processes must be given the same data and arguments, but process {rank} is not: its"
        _check_same(runs[0], other, rule, "that of process 0 is {}")


def _callbacks(
    loop: Loop, callbacks: Sequence[Callback], style: ProgressStyle, stack: ExitStack
) -> list[Callback]:
    """Start callbacks and progress display, on the first process only; the stack closes them."""
    bar = make_progress(style, loop.recipe.epochs, loop.sampler.n_batches)
    watchers = [*callbacks, bar] if loop.fabric.is_global_zero else []
    for watcher in watchers:
        stack.callback(watcher.close)
        watcher.start(loop.state.history)
    return watchers


def _resume(loop: Loop, checkpoints: Checkpoints | None) -> None:
    """Continue from the newest checkpoint; all processes use that of the first."""
    saved = loop.fabric.broadcast(None if checkpoints is None else checkpoints.read())
    if saved is None:
        return
    check.require(saved["format"] == FORMAT, f"`checkpoint` must have format {FORMAT}, got {saved['format']}")
    rule = "`checkpoint` must belong to the same run, but its"
    hint = "this run's is {}; use another folder"
    # Reading it as a recipe fills in the defaults of settings that did not exist when it was saved.
    recipe = Recipe.from_dict(saved["run"]["recipe"]).to_dict()
    _check_same(_identity(loop)["run"], {**saved["run"], "recipe": recipe}, rule, hint)
    loop.state.restore(saved)
    loop.last = loop.state.snapshot()


def _check_same(current: dict[str, Any], saved: dict[str, Any], rule: str, hint: str) -> None:
    """Require that two descriptions of a run agree."""
    ours, others = _flat(current), _flat(saved)
    for key in sorted(ours.keys() | others.keys()):
        check.require(
            ours.get(key) == others.get(key),
            f"{rule} {key} is {others.get(key)}, {hint.format(ours.get(key))}",
        )


def _identity(loop: Loop) -> dict[str, Any]:
    """Describe the run, which must not change on resuming, and the package versions, which may."""
    shapes = {name: list(tensor.shape) for name, tensor in loop.state.model.state_dict().items()}
    same = {
        "recipe": loop.recipe.to_dict(),
        "seed": loop.seed,
        "n_train": len(loop.train),
        "data": getattr(loop.train, "digest", None),
        "class_weights": _listed(getattr(loop.loss, "class_weights", None)),
        "model": shapes,
        "settings": _settings(loop.state.model),
    }
    return {"run": same, "versions": {name: importlib.metadata.version(name) for name in PACKAGES}}


def _settings(model: nn.Module) -> dict[str, float | str]:
    """Return settings that shapes do not show, such as dropout rates; integers may be counters."""
    return {
        f"{name} {key}": value
        for name, module in model.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, float | str)
    }


def _listed(values: Any) -> Any:
    return values.tolist() if isinstance(values, Tensor) else None


def _flat(data: Any, name: str = "") -> dict[str, Any]:
    """Flatten nested data into one dict with dotted names."""
    if not isinstance(data, dict):
        return {name.lstrip("."): data}
    return {k: v for key, value in data.items() for k, v in _flat(value, f"{name}.{key}").items()}


def _one_device() -> Fabric:
    from lightning_fabric import Fabric

    return Fabric(devices=1)


def _as_checkpoints(checkpoint: str | Path | Checkpoints | None) -> Checkpoints | None:
    if checkpoint is None or isinstance(checkpoint, Checkpoints):
        return checkpoint
    return Checkpoints(Path(checkpoint))


def _check_arguments(
    loss: LossFunction, recipe: Recipe, seed: int, validation: Source | None, metrics: Mapping[str, Metric]
) -> None:
    check_honored(loss, recipe)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"`seed` must be an integer, got {type(seed).__name__}")
    check.require(seed >= 0, f"`seed` must be at least 0, got {seed}")
    if validation is None:
        check.require(not metrics, f"`metrics` need `validation`, got {sorted(metrics)} without it")
        columns = ["train_loss"]
    else:
        check.require(len(validation) > 0, "`validation` must hold at least one row, got none")
        columns = ["train_loss", "validation_loss", *(f"validation_{name}" for name in metrics)]
    check.choice("recipe.monitor", recipe.monitor, tuple(columns))
