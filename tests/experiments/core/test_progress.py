"""How far a run is: lines, a bar under them, or nothing."""

import io
import re

import pytest
from rich.console import Console

from experiments.core.test_rows import ROW
from experiments.core.toy import random_cell
from seq2tens.experiments.core.processes import Outcome
from seq2tens.experiments.core.progress import Progress


@pytest.mark.parametrize("style", ["lines", "bar"])
def test_progress(style):
    text = io.StringIO()
    with Progress(style, 3, Console(file=text, width=200)) as display:
        display.show(Outcome(random_cell("LIBRAS"), ROW))
        display.show(Outcome(random_cell("ECG"), reason="ended by SIGKILL"))
        display.show(Outcome(random_cell("Wafer")))
    shown = re.sub(r"\d:\d\d:\d\d left", "TIME left", text.getvalue())
    assert "LIBRAS random-ls2t (seed 0): accuracy 0.9778, 70.3 s (1 of 3, about TIME left)\n" in shown
    assert "ECG random-ls2t (seed 0): failed, ended by SIGKILL (2 of 3, about TIME left)\n" in shown
    assert "Wafer random-ls2t (seed 0): left to another run (3 of 3)\n" in shown


@pytest.mark.parametrize("style", ["auto", True])
def test_a_terminal_gets_a_bar_and_a_pipe_lines(style):
    assert shown(style, force_terminal=True).count("LIBRAS random-ls2t") == 1
    assert "━" in shown(style, force_terminal=True)
    assert "━" not in shown(style, force_terminal=False)
    assert shown(style, force_terminal=False).count("LIBRAS random-ls2t") == 1


@pytest.mark.parametrize("style", ["silent", False])
def test_nothing_is_shown_if_so_asked(style):
    assert shown(style, force_terminal=True) == ""


def shown(style, force_terminal):
    """What is written about one cell."""
    text = io.StringIO()
    with Progress(style, 3, Console(file=text, width=200, force_terminal=force_terminal)) as display:
        display.show(Outcome(random_cell("LIBRAS"), ROW))
    return text.getvalue()
