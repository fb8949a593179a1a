"""Processes that are stopped or killed, and the same command again."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest

from cli.shell import COMMAND
from cli.stream.streams import begin, streamed


@pytest.mark.slow
def test_killed_before_its_first_save_the_same_command_begins_again(model, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    with begin(model, "--state", state, "--out", out) as process:
        process.stdin.write(rows.encode())
        process.stdin.flush()
        while not (out.exists() and out.stat().st_size > 200):
            time.sleep(0.02)
        process.kill()
    streamed(model, rows, "--out", out, "--state", state)
    assert out.read_text() == streamed(model, rows)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_predictions_come_at_once_and_a_signal_saves(model, rows, tmp_path, number, code):
    header, *lines = rows.splitlines(keepends=True)
    state = tmp_path / "state"
    with begin(model, "--state", state) as process:
        process.stdin.write(header.encode())
        process.stdin.flush()
        answers = [process.stdout.readline().decode()]
        for line in lines[:5]:  # each is answered before the next is sent
            process.stdin.write(line.encode())
            process.stdin.flush()
            answers.append(process.stdout.readline().decode())
        process.send_signal(number)
        output, errors = process.communicate()
    assert process.returncode == code
    assert output == b""
    assert errors.decode().startswith("seq2tens: stopped after row 5; the same command resumes")
    assert "".join(answers) + streamed(model, rows, "--state", state) == streamed(model, rows)


@pytest.mark.slow
def test_a_hundred_thousand_rows_killed_in_the_middle(unnamed, tmp_path):
    rng = np.random.default_rng(0)
    header = ",".join(["id", *(f"c{i}" for i in range(12))])
    steps = [
        f"{i // 1000}," + ",".join(f"{v:.3f}" for v in row)
        for i, row in enumerate(rng.normal(size=(10**5, 12)))
    ]
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join([header, *steps]) + "\n")

    def feed(*options):
        cat = subprocess.Popen(["cat", rows], stdout=subprocess.PIPE)
        command = [COMMAND, "stream", unnamed, *map(str, options)]
        reader = subprocess.Popen(command, stdin=cat.stdout, env={**os.environ, "OMP_NUM_THREADS": "1"})
        cat.stdout.close()
        return cat, reader

    whole, cut, state = tmp_path / "whole.csv", tmp_path / "cut.csv", tmp_path / "state"
    straight = feed("--out", whole, "--every", 2)
    for size in (10**6, 3 * 10**6):  # bytes, of some nine million
        cat, reader = feed("--out", cut, "--state", state, "--every", 2, "--save-every", 777)
        while not (cut.exists() and cut.stat().st_size > size):
            assert reader.poll() is None
            time.sleep(0.02)
        reader.kill()
        assert reader.wait() == -signal.SIGKILL
        cat.wait()
        assert state.exists()
    for cat, reader in (straight, feed("--out", cut, "--state", state, "--every", 2, "--save-every", 777)):
        assert reader.wait() == 0
        assert cat.wait() == 0
    assert whole.read_bytes().count(b"\n") == 10**5 // 2 + 1
    assert cut.read_bytes() == whole.read_bytes()
