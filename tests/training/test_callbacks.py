import csv
import sys

import pytest

from seq2tens.training import Callback, Checkpoints, CSVLog, MLflowLog, TensorBoardLog
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


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """What makes a log whose runs are kept in a folder, which MLflow wants to be asked for."""
    pytest.importorskip("mlflow", reason="the extra [mlflow] is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    where = f"file:{tmp_path / 'runs'}"
    return lambda **options: MLflowLog("waves", tracking_uri=where, **options)


def points(log, name):
    history = log.client.get_metric_history(log.run_id, name)
    return {point.step: point.value for point in history}, len(history)


def test_mlflow_has_the_history_and_the_parameters(mlflow):
    log = mlflow(run_name="first", params={"width": 3})
    _, result = train(recipe(), callbacks=[log], **VALIDATION)
    for name in ("train_loss", "validation_accuracy", "rate"):
        expected = {row["epoch"]: row[name] for row in result.history}
        assert points(log, name) == (expected, 4)
    run = log.client.get_run(log.run_id)
    assert (run.info.status, run.info.run_name, run.data.params) == ("FINISHED", "first", {"width": "3"})


def test_mlflow_of_a_resumed_run_has_every_epoch_once(mlflow, tmp_path):
    log, checkpoint = mlflow(), Checkpoints(tmp_path / "checkpoints", seconds=0)
    with pytest.raises(KeyboardInterrupt):
        train(recipe(), callbacks=[log, Stop()], checkpoint=checkpoint)
    assert log.client.get_run(log.run_id).info.status == "KILLED"
    again, new = mlflow(run_id=log.run_id), mlflow()
    train(recipe(), callbacks=[again, new], checkpoint=checkpoint)
    assert again.run_id == log.run_id != new.run_id
    for resumed in (again, new):
        found, count = points(resumed, "train_loss")
        assert sorted(found) == [1, 2, 3, 4]
        assert count == 4
        assert resumed.client.get_run(resumed.run_id).info.status == "FINISHED"


def test_mlflow_tells_a_failure(mlflow):
    class Fail(Callback):
        def epoch(self, row, model):
            raise RuntimeError("no more")

    log = mlflow()
    try:
        raise ValueError("handled elsewhere")
    except ValueError:
        train(recipe(), callbacks=[log])  # what is handled outside is no failure of the run
    assert log.client.get_run(log.run_id).info.status == "FINISHED"
    log = mlflow()
    with pytest.raises(RuntimeError, match="no more"):
        train(recipe(), callbacks=[log, Fail()])
    assert log.client.get_run(log.run_id).info.status == "FAILED"


def test_mlflow_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"MLflowLog needs MLflow: pip install 'seq2tens\[mlflow\]'"):
        MLflowLog()


def test_callbacks_are_closed_after_an_error():
    closed = []

    class Closing(Stop):
        def close(self):
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        train(recipe(), callbacks=[Closing()])
    assert closed == [True]
