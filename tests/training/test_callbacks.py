import csv
import sys

import pytest

from seq2tens.training import Callback, Checkpoints, CSVLog, TensorBoardLog
from training.problems import accuracy, order_task, recipe, train

VALIDATION = {"validation": order_task(20, seed=1), "metrics": {"accuracy": accuracy}}


class Stop(Callback):
    def epoch(self, row, model):
        if row["epoch"] == 3:
            raise KeyboardInterrupt


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_csv_is_the_history(tmp_path):
    _, result = train(recipe(), callbacks=[CSVLog(tmp_path / "logs" / "run.csv")], **VALIDATION)
    rows = table(tmp_path / "logs" / "run.csv")
    assert [{k: float(v) for k, v in row.items()} for row in rows] == list(result.history)


def test_csv_of_a_resumed_run_has_every_epoch_once(tmp_path):
    log, checkpoint = CSVLog(tmp_path / "run.csv"), Checkpoints(tmp_path / "checkpoints", seconds=0)
    with pytest.raises(KeyboardInterrupt):
        train(recipe(), callbacks=[log, Stop()], checkpoint=checkpoint)
    assert len(table(log.path)) == 3
    train(recipe(), callbacks=[CSVLog(log.path)], checkpoint=checkpoint)
    assert [row["epoch"] for row in table(log.path)] == ["1", "2", "3", "4"]


def test_tensorboard_curves(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _, result = train(recipe(), callbacks=[TensorBoardLog(tmp_path)], **VALIDATION)
    events = EventAccumulator(str(tmp_path)).Reload()
    points = events.Scalars("validation_accuracy")
    assert [point.step for point in points] == [1, 2, 3, 4]
    expected = [row["validation_accuracy"] for row in result.history]
    assert [point.value for point in points] == pytest.approx(expected)


def test_tensorboard_missing_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="TensorBoardLog needs tensorboard: pip install tensorboard"):
        TensorBoardLog(tmp_path)


def test_callbacks_are_closed_after_an_error():
    closed = []

    class Closing(Stop):
        def close(self):
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        train(recipe(), callbacks=[Closing()])
    assert closed == [True]
