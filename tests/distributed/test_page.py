"""The page on several processes: its scripts run under torchrun, its tables are those of the cost model."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.cost_model import END, NETWORKS, RESULTS, START, Link, Rank, report, seconds, traffic

from distributed.counting import counted
from distributed.processes import together
from distributed.test_torchrun import QUIET, TORCHRUN, free_port

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
SCRIPTS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_scripts_run(number, tmp_path):
    assert "assert" in SCRIPTS[number]
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[number])
    command = [*TORCHRUN, "--master-port", free_port(), str(script)]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | QUIET, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_exchange_what_the_model_counts(ranks):
    for found in together(counted, ranks):
        for name, make in NETWORKS.items():
            short, long = found[name]
            assert short == long
            assert short.calls == traffic(make(), ranks).calls
            assert short.bytes == pytest.approx(traffic(make(), ranks).bytes)


def test_the_page_shows_what_the_model_computes(tmp_path):
    page = tmp_path / "scale.md"
    before, _, rest = PAGE.read_text().partition(START)
    page.write_text(f"{before}{START}{END}{rest.partition(END)[2]}")
    report(RESULTS, page)
    assert page.read_text() == PAGE.read_text()
    assert set(json.loads(RESULTS.read_text())["ranks"]) == set(NETWORKS)


def test_time_is_computed_from_work_and_exchange():
    network = NETWORKS["LS2T"]()
    rank, link = Rank(seconds=1e-6, bytes=100, fold_seconds=1e-4), Link(seconds=1e-5, bytes_per_second=1e9)
    assert seconds(network, 10**6, 1, rank, link) == (1.0, 0.0)
    sent = traffic(network, 4)
    own, others = seconds(network, 10**6 + 1, 4, rank, link)
    assert own == pytest.approx(0.250001)
    assert others == pytest.approx(2e-4 + 1e-5 * sent.calls + sent.bytes / 1e9)
    # shapes, lengths, 6 words · 16 functionals there and back, gradients of 3 · (4 + 1) · 16 parameters
    assert sent.calls == 5
    assert sent.bytes == 3 * (24 + 8 + 96 * 4) + 2 * 3 * 96 * 4 + 1.5 * 240 * 4


@pytest.mark.slow
def test_a_rank_is_measured():
    command = [sys.executable, "-m", "benchmarks.cost_model", "one", "LS2T"]
    done = subprocess.run(command, env=os.environ | QUIET, capture_output=True, text=True, check=True)
    found = Rank(**json.loads(done.stdout.splitlines()[-1]))
    assert found.seconds > 0
    assert found.bytes > 4 * (4 + 3 * 16)
    assert found.fold_seconds > 0
