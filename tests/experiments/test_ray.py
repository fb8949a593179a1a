"""Runs on a Ray cluster."""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.shell import COMMAND
from experiments.toy import archive, environment, is_running, wait_for
from seq2tens.experiments import Cell, read, run_on_ray

CELLS = [Cell("tsc", "LIBRAS", "ls2t64-3", seed, "fast") for seed in range(4)]


@pytest.fixture
def cluster(tmp_path):
    """Two nodes of one core each."""
    pytest.importorskip("ray")
    with (
        open(tmp_path / "cluster.log", "w") as log,
        subprocess.Popen(
            [sys.executable, Path(__file__).with_name("ray_cluster.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            bufsize=1,
        ) as process,
    ):
        yield process


def reproduce(address, data, table, *more):
    command = ["reproduce", "tsc", "--ray", address, "--out", table, "--progress", "lines", *more]
    return subprocess.Popen(
        [COMMAND, *map(str, command)],
        env=environment(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def working(scratch):
    """Process ids of workers that hold a lock in a folder, and the cells they work on."""
    found = {}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = descriptor.readlink()
        except OSError:  # it has ended meanwhile, or is not ours
            continue
        if target.parent == scratch and target.suffix == ".lock":
            found[int(descriptor.parts[2])] = target.stem
    return found


@contextmanager
def halted(processes):
    """Let processes stand still, so that none can end before something else has happened."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in filter(is_running, processes):
            os.kill(process, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.skipif(
    "PYTEST_XDIST_WORKER" in os.environ,
    reason="beside other tests it fails at times, for a reason not yet found; it passes by itself",
)
def test_a_lost_machine_costs_its_cells_only(cluster, tmp_path):
    data, table = archive(tmp_path / "data", steps=200), tmp_path / "t.csv"  # of some seconds each
    (data / "tsc" / "ECG.npz").write_text("not an archive")
    address = cluster.stdout.readline().strip()
    assert address.startswith("127.0.0.1:")

    refused = reproduce(address, data, table, "--models", "dtw", "--threads", 3)
    _, stderr = refused.communicate()
    assert refused.returncode == 2
    assert stderr.endswith("`--threads` must be at most 1, the cores of the largest machine, got 3\n")

    chosen = ["--models", "ls2t64-3", "--datasets", "LIBRAS", "--seeds", len(CELLS)]
    process = reproduce(address, data, table, *chosen)
    both = wait_for(lambda: len(found := working(tmp_path / ".seq2tens")) == 2 and found)
    with halted(both):
        finished = {row.key for row in read(table)} if table.exists() else set()
        assert finished.isdisjoint(both.values())  # they are in the middle of their work
        print("remove", file=cluster.stdin)
        assert cluster.stdout.readline() == "removed\n"
    wait_for(lambda: not all(map(is_running, both)))
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stdout == f"{len(CELLS)} cells added to {table}\n"
    assert Counter(row.key for row in read(table)) == Counter(cell.key for cell in CELLS)
    assert list((tmp_path / ".seq2tens").iterdir()) == []

    process = reproduce(address, data, table, *chosen[:-1], len(CELLS) + 1)
    (killed,) = wait_for(lambda: working(tmp_path / ".seq2tens"))
    os.kill(killed, signal.SIGKILL)
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stdout == f"1 cells added to {table}\n"

    failing = reproduce(address, data, table, *chosen, "--datasets", "ECG", "--models", "dtw")
    _, stderr = failing.communicate()
    assert failing.returncode == 1
    assert "ECG dtw (seed 0): failed, " in stderr
    assert "must be a zip of arrays" in stderr
    cluster.stdin.close()


def test_without_ray_the_line_that_installs_it_is_printed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs ray: pip install 'seq2tens\[ray\]'"):
        run_on_ray(CELLS, tmp_path / "t.csv", "auto")


@pytest.mark.parametrize("address", ["cluster", ":6379", "host:", "host:port"])
def test_what_is_no_address(address, tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match="`address` must be HOST:PORT or 'auto', got"):
        run_on_ray(CELLS, tmp_path / "t.csv", address)


def test_an_address_where_nothing_answers(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match=r"but nothing answers at 127\.0\.0\.1:1 \("):
        run_on_ray(CELLS, tmp_path / "t.csv", "127.0.0.1:1")
