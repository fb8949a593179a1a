"""Runs on a Ray cluster."""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cli.shell import COMMAND
from experiments.core.toy import archive, environment, is_running, wait_for
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


@contextmanager
def reproduce(address, data, table, *more):
    """The command, which does not outlive a test that fails."""
    command = ["reproduce", "tsc", "--ray", address, "--out", table, "--progress", "lines", *more]
    with subprocess.Popen(
        [COMMAND, *map(str, command)],
        env=environment(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def working(scratch):
    """Process ids of workers that hold a lock in a folder, and the cells they work on."""
    cells = {}
    for lock in scratch.glob("*.lock"):
        with suppress(FileNotFoundError):  # the cell is finished
            cells[lock.stat().st_ino] = lock.stem
    found = {}
    for line in Path("/proc/locks").read_text().splitlines():
        *_, process, file, _, _ = line.split()
        if (inode := int(file.rpartition(":")[2])) in cells:
            found[int(process)] = cells[inode]
    return found


@contextmanager
def halted(scratch, number):
    """As many workers, each of which stands still as soon as it has begun: none ends before this does."""
    found = {}

    def halt_more():
        for process, cell in working(scratch).items():
            if process not in found:
                os.kill(process, signal.SIGSTOP)
                found[process] = cell
        return len(found) == number

    try:
        wait_for(halt_more)
        yield found
    finally:
        for process in filter(is_running, found):
            os.kill(process, signal.SIGCONT)


@pytest.mark.slow
def test_a_lost_machine_costs_its_cells_only(cluster, tmp_path):
    data, table = archive(tmp_path / "data", steps=200), tmp_path / "t.csv"  # of some seconds each
    (data / "tsc" / "ECG.npz").write_text("not an archive")
    address = cluster.stdout.readline().strip()
    assert address.startswith("127.0.0.1:")

    with reproduce(address, data, table, "--models", "dtw", "--threads", 3) as refused:
        _, stderr = refused.communicate()
    assert refused.returncode == 2
    assert stderr.endswith("`--threads` must be at most 1, the cores of the largest machine, got 3\n")

    scratch = tmp_path / ".seq2tens"
    chosen = ["--models", "ls2t64-3", "--datasets", "LIBRAS", "--seeds", len(CELLS)]
    with reproduce(address, data, table, *chosen) as process:
        with halted(scratch, 2) as both:
            assert len(set(both.values())) == 2
            assert not table.exists()  # they are in the middle of their work
            print("remove", file=cluster.stdin)
            assert cluster.stdout.readline() == "removed\n"
        wait_for(lambda: not all(map(is_running, both)))
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stdout == f"{len(CELLS)} cells added to {table}\n"
    assert Counter(row.key for row in read(table)) == Counter(cell.key for cell in CELLS)
    assert list(scratch.iterdir()) == []

    with reproduce(address, data, table, *chosen[:-1], len(CELLS) + 1) as process:
        (killed,) = wait_for(lambda: working(scratch))
        os.kill(killed, signal.SIGKILL)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stdout == f"1 cells added to {table}\n"

    with reproduce(address, data, table, *chosen, "--datasets", "ECG", "--models", "dtw") as failing:
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
