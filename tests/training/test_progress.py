"""How far a run is, as it is shown."""

import io

import pytest
from rich.console import Console

from seq2tens.training.progress import clock, make_progress
from training.problems import accuracy, order_task, recipe, train

VALIDATION = {"validation": order_task(20, seed=1), "metrics": {"accuracy": accuracy}}


@pytest.mark.parametrize("style", ["silent", False])
def test_silent_is_silent(style, capfd):
    train(recipe(), progress=style)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("style", ["auto", True, "lines"])
def test_plain_lines_where_there_is_no_terminal(style, capsys):
    train(recipe(), progress=style, **VALIDATION)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert "\x1b" not in err
    assert len(lines) == 2
    assert lines[0].startswith("epoch 1/4  train loss 0.")
    assert "validation accuracy" in lines[0]
    assert lines[0].endswith(" left")
    assert lines[1].startswith("epoch 4/4")
    assert lines[1].endswith("at most 0:00:00 left")


@pytest.mark.parametrize("style", ["auto", True, "bar"])
def test_a_bar_in_a_terminal(style):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    bar = make_progress(style, epochs=2, batches=5, console=console)
    bar.start([])
    for epoch in (1, 2):
        bar.advance(5)
        bar.epoch({"epoch": epoch, "train_loss": 0.5, "rate": 0.1, "seconds": 0.1}, None)
    bar.close()
    assert "epoch 2/2  train loss 0.5" in screen.getvalue()
    assert "10/10" in screen.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (59.6, "0:01:00"), (7325, "2:02:05")])
def test_clock(seconds, text):
    assert clock(seconds) == text
