"""How far a run is, as it is shown."""

import io
import os
import sys

import pytest
from rich.console import Console

from seq2tens.training.progress import Lines, format_seconds, in_notebook, make_progress
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


def test_lines_that_are_written_anew_are_not_written_at_every_epoch():
    written = []
    line = Lines(1000, written.append, every=3600)
    line.start([])
    for epoch in range(1, 1001):
        line.epoch({"epoch": epoch, "train_loss": 1 / epoch, "rate": 0.1, "seconds": 0.1}, None)
    assert [text.split()[1] for text in written] == ["1/1000"]
    line.close()
    assert [text.split()[1] for text in written] == ["1/1000", "1000/1000"]


NOTEBOOK = """
from training.problems import recipe, train
train(recipe(), progress={style!r});
"""


@pytest.mark.slow
@pytest.mark.parametrize("style", ["auto", "bar"])
def test_one_line_in_a_notebook(style, monkeypatch):
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    cell = nbformat.v4.new_code_cell(NOTEBOOK.format(style=style))
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell])).execute()
    (output,) = cell.outputs
    assert output.output_type == "display_data"
    assert list(output.data) == ["text/plain"]
    assert output.data["text/plain"].startswith("epoch 4/4  train loss ")


def test_outside_a_notebook():
    assert not in_notebook()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (59.6, "0:01:00"), (7325, "2:02:05")])
def test_clock(seconds, text):
    assert format_seconds(seconds) == text
