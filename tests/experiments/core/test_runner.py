"""Runs on this machine: what is finished is kept, what dies costs its cell only."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

import seq2tens
from experiments.core.test_rows import ROW
from experiments.core.toy import archive, environment, is_running, random_cell, wait_for, workers_of
from seq2tens.data import load_dataset
from seq2tens.experiments import MODELS, Cell, append, read, run
from seq2tens.experiments.core.processes import Outcome, Processes
from seq2tens.experiments.core.runner import cores, prepare, record
from seq2tens.experiments.tsc.data import published_collections


@pytest.fixture
def data(tmp_path):
    return archive(tmp_path / "data")


@pytest.mark.slow
def test_cells_are_run_once(data, tmp_path):
    cells, table = [random_cell("LIBRAS"), random_cell("ECG"), random_cell("LIBRAS")], tmp_path / "tsc.csv"
    summary = run(cells, table, workers=2, threads=5, data=data, progress="silent")
    rows = read(table)
    assert {row.key for row in rows} == {cell.key for cell in summary.done}
    assert len(rows) == 2
    assert not summary.failed
    assert {row.threads for row in rows} == {2}
    train, test = load_dataset("ECG", data)
    direct = MODELS["random-ls2t"].make(0, "-", 1).fit(train.sequences, train.labels)
    (row,) = [row for row in rows if row.dataset == "ECG"]
    assert row.accuracy == round(direct.score(test.sequences, test.labels), 6)
    assert f"seq2tens {seq2tens.__version__}" in row.versions
    assert list((tmp_path / ".seq2tens").iterdir()) == []  # nothing is left over
    again = run(cells, table, data=data, progress="silent")
    assert not again.done
    assert read(table) == rows


@pytest.mark.slow
def test_a_cell_that_fails_does_not_keep_the_others_from_running(data, tmp_path):
    (data / "tsc" / "LIBRAS.npz").write_text("not an archive")
    summary = run(
        [random_cell("LIBRAS"), random_cell("ECG")], tmp_path / "t.csv", data=data, progress="silent"
    )
    assert [row.dataset for row in read(tmp_path / "t.csv")] == ["ECG"]
    (reason,) = summary.failed.values()
    log = tmp_path / ".seq2tens" / f"{random_cell('LIBRAS').key}.log"
    assert "LIBRAS.npz: must be a zip of arrays" in reason
    assert reason.endswith(f"(more in {log})")
    assert "Traceback" in log.read_text()


@pytest.mark.slow
def test_a_killed_process_costs_its_cell_only(data, tmp_path):
    table, found = tmp_path / "t.csv", []
    cells = [random_cell("LIBRAS"), random_cell("ECG")]
    thread = threading.Thread(target=lambda: found.append(run(cells, table, data=data, progress="silent")))
    thread.start()
    victim = wait_for(lambda: workers_of(os.getpid()))[0]
    os.kill(victim, signal.SIGKILL)
    thread.join()
    assert found[0].failed == {cells[0]: "ended by SIGKILL"}
    assert [row.dataset for row in read(table)] == ["ECG"]
    # the same call runs what is missing
    assert run(cells, table, data=data, progress="silent").done == [cells[0]]
    assert len(read(table)) == 2


RUN = """
import sys
from seq2tens.experiments import Cell, run
run([Cell("tsc", "LIBRAS", "fcn128-ls2t64-3", 0, "paper")], sys.argv[1], threads=1, progress="silent")
"""


def start(table, data):
    return subprocess.Popen([sys.executable, "-c", RUN, table], env=environment(data))


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(data, tmp_path):
    """All of it is killed, when there is a checkpoint; the result is that of a run in one go."""
    table, cell = tmp_path / "t.csv", Cell("tsc", "LIBRAS", "fcn128-ls2t64-3", 0, "paper")
    folder = tmp_path / ".seq2tens" / cell.key
    process = start(table, data)
    wait_for(lambda: list(folder.glob("epoch-*.pt")))
    (worker,) = workers_of(process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: not is_running(worker))  # it has noticed
    (first, *_) = sorted(folder.glob("epoch-*.pt"))
    assert not table.exists()
    done = run([cell], table, threads=1, data=data, progress="silent").done
    assert done == [cell]
    (row,) = read(table)
    train, test = load_dataset("LIBRAS", data)
    padded = published_collections(train, test)
    direct = MODELS["fcn128-ls2t64-3"].make(0, "paper", 1).set_params(scaling=None)
    direct.fit(padded.train, train.labels)
    assert row.epochs == len(direct.history_) > int(first.stem.removeprefix("epoch-"))
    assert row.accuracy == round(direct.score(padded.test, test.labels), 6)
    assert row.fit_seconds > 10  # the first checkpoint is written then
    assert not folder.exists()


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(data, tmp_path):
    process = start(tmp_path / "t.csv", data)
    (worker,) = wait_for(lambda: workers_of(process.pid))
    process.kill()
    process.wait()
    wait_for(lambda: not is_running(worker))


@pytest.mark.slow
def test_cells_that_another_run_is_at_work_on_are_left_to_it(data, tmp_path):
    cells, scratch = [random_cell("LIBRAS"), random_cell("ECG")], tmp_path / "scratch"
    scratch.mkdir()
    with FileLock(scratch / f"{cells[0].key}.lock"):
        summary = run(cells, tmp_path / "t.csv", data=data, scratch=scratch, progress="silent")
    assert summary.elsewhere == [cells[0]]
    assert summary.done == [cells[1]]
    assert not summary.failed


@pytest.mark.slow
def test_cells_that_another_run_finishes_meanwhile_are_not_run_again(data, tmp_path):
    cells, table = [random_cell("LIBRAS"), random_cell("ECG")], tmp_path / "t.csv"
    run(cells, tmp_path / "other.csv", data=data, progress="silent")
    thread_run = []
    thread = threading.Thread(
        target=lambda: thread_run.append(run(cells, table, data=data, progress="silent"))
    )
    thread.start()
    wait_for(lambda: workers_of(os.getpid()))
    append(table, read(tmp_path / "other.csv")[1])
    thread.join()
    assert thread_run[0].done == [cells[0]]
    assert thread_run[0].elsewhere == [cells[1]]


COUNT = """
import sys
from experiments.core.toy import random_cell
from seq2tens.experiments import run
summary = run([random_cell(seed=seed) for seed in range(int(sys.argv[2]))], sys.argv[1], progress="silent")
assert not summary.failed, summary.failed
print(*(cell.seed for cell in summary.done))
"""


@pytest.mark.slow
def test_two_runs_count_each_cell_once(data, tmp_path):
    table, n = tmp_path / "t.csv", 6
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT, table, str(n)],
            env=environment(data) | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    counted = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(seed for seeds in counted for seed in seeds) == [str(seed) for seed in range(n)]
    assert sorted(row.seed for row in read(table)) == list(range(n))
    assert list((tmp_path / ".seq2tens").iterdir()) == []


def test_a_cell_that_is_in_the_table_by_then_was_finished_elsewhere(data, tmp_path):
    table = tmp_path / "t.csv"
    (request,) = prepare([random_cell()], table, threads=1, data=data)
    row = replace(ROW, key=request.cell.key)
    assert record(Outcome(request.cell, row), request, table) == Outcome(request.cell, row)
    assert record(Outcome(request.cell, row), request, table) == Outcome(request.cell)
    assert read(table) == [row]


def test_processes_that_were_stopped_start_nothing(data, tmp_path):
    processes = Processes()
    processes.stop()
    (request,) = prepare([random_cell()], tmp_path / "t.csv", threads=1, data=data)
    assert processes.run(request) == Outcome(request.cell, reason="interrupted")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workers": 0}, "`workers` must be at least 1, got 0"),
        ({"threads": 0}, "`threads` must be at least 1, got 0"),
        ({"progress": "loud"}, "`progress` must be one of 'auto', 'bar', 'lines', 'silent', got 'loud'"),
    ],
)
def test_refusals(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        run([random_cell()], tmp_path / "t.csv", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_table_is_refused_before_anything_is_run(tmp_path):
    (tmp_path / "t.csv").write_text("accuracy\n0.9\n")
    with pytest.raises(ValueError, match=r"t\.csv, line 1: must have all columns"):
        run([random_cell()], tmp_path / "t.csv", progress="silent")


def test_threads_are_shared_by_workers(tmp_path):
    assert cores() >= 1
    (request,) = prepare([random_cell()], tmp_path / "t.csv", threads=3, data=".", scratch="x")
    assert (request.threads, request.data, request.scratch) == (3, str(Path.cwd()), str(Path("x").resolve()))
