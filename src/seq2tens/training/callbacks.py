"""Callbacks that log a training run as tables and curves."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from seq2tens.training.state import Row


class Callback:
    """Base class of callbacks, which run on the first process only. An exception in one ends the run."""

    def start(self, history: Sequence[Row]) -> None:
        """Called before the first epoch; `history` has the epochs of the checkpoint that is resumed."""

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Called after an epoch, before it is saved; `model` has the weights at its end."""

    def interrupt(self) -> None:
        """Called after Ctrl-C, when the run ends with the last complete epoch; `close` follows."""

    def close(self) -> None:
        """Called at the end of the run, also after an exception."""


class CSVLog(Callback):
    """Writes the history to a CSV file; a resumed run continues it from the end of its checkpoint."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.empty = True

    def start(self, history: Sequence[Row]) -> None:
        """Write the epochs so far; rows that an older run wrote after them are removed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")
        self.empty = True
        for row in history:
            self._append(row)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Append a row."""
        self._append(row)

    def _append(self, row: Row) -> None:
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if self.empty:
                writer.writeheader()
            writer.writerow(row)
        self.empty = False


class TensorBoardLog(Callback):
    """Writes the history as curves for TensorBoard."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.writer_class = _summary_writer()
        self.writer: Any = None

    def start(self, history: Sequence[Row]) -> None:
        """Open the log; hide what an older run wrote after the epochs so far."""
        self.writer = self.writer_class(str(self.folder), purge_step=len(history) + 1)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Add a point to each curve."""
        for name, value in row.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, int(row["epoch"]))

    def close(self) -> None:
        """Flush and close the log."""
        if self.writer is not None:
            self.writer.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoardLog needs tensorboard: pip install tensorboard") from error
    return SummaryWriter


class MLflowLog(Callback):
    """Logs the history as metrics of an MLflow run: `pip install 'seq2tens[mlflow]'`.

    Args:
        experiment: name of the experiment; it is created if it does not exist.
        run_name: name of the run (default: chosen by MLflow).
        tracking_uri: where runs are stored (default: the setting of MLflow).
        params: parameters of the run to log, such as `dataclasses.asdict(recipe)`.
        run_id: continue this run, after the epochs that it has. By default, resuming from a checkpoint starts
            a new run, which begins with the epochs so far.

    After `start` the attribute `run_id` is set. A run that ends with an exception is marked as failed; after
    Ctrl-C, as killed.
    """

    def __init__(
        self,
        experiment: str = "seq2tens",
        *,
        run_name: str | None = None,
        tracking_uri: str | None = None,
        params: Mapping[str, Any] | None = None,
        run_id: str | None = None,
    ) -> None:
        self.experiment, self.run_name, self.params, self.run_id = experiment, run_name, params or {}, run_id
        self.client = _mlflow_client(tracking_uri)
        self.begun = self.killed = False
        self.outer: BaseException | None = None  # an exception that was being handled before the run

    def start(self, history: Sequence[Row]) -> None:
        """Start or continue a run, and log the epochs that it does not have yet."""
        self.outer, self.killed = sys.exc_info()[1], False
        if self.run_id is None:
            self.run_id = self._new_run()
            for name, value in self.params.items():
                self.client.log_param(self.run_id, name, value)
        else:
            self.client.update_run(self.run_id, status="RUNNING")
        self.begun = True
        logged = {point.step for point in self.client.get_metric_history(self.run_id, "train_loss")}
        for row in history:
            if int(row["epoch"]) not in logged:
                self._log(row)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Add a point to each metric."""
        self._log(row)

    def close(self) -> None:
        """Mark the run as finished, failed or killed."""
        if not self.begun:
            return
        error = sys.exc_info()[1]
        killed = self.killed or isinstance(error, KeyboardInterrupt)
        status = "KILLED" if killed else "FINISHED" if error is self.outer else "FAILED"
        self.client.set_terminated(self.run_id, status=status)
        self.begun = False

    def interrupt(self) -> None:
        """Note that the run was killed."""
        self.killed = True

    def _new_run(self) -> str:
        experiment = self.client.get_experiment_by_name(self.experiment)
        number = (
            self.client.create_experiment(self.experiment) if experiment is None else experiment.experiment_id
        )
        return str(self.client.create_run(number, run_name=self.run_name).info.run_id)

    def _log(self, row: Row) -> None:
        for name, value in row.items():
            if name != "epoch":
                self.client.log_metric(self.run_id, name, value, step=int(row["epoch"]))


def _mlflow_client(tracking_uri: str | None) -> Any:
    try:
        from mlflow import MlflowClient
    except ImportError as error:
        raise ImportError("MLflowLog needs MLflow: pip install 'seq2tens[mlflow]'") from error
    return MlflowClient(tracking_uri)
