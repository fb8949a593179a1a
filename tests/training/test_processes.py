"""Killed processes, and several at once."""

import random
import signal
import socket
import sys
import time

import pytest
import safetensors.torch
import torch

from seq2tens.training import Checkpoints
from seq2tens.training.checkpoint import decode
from training.problems import recipe, same_weights, train
from training.workers import double_run, interruptible, receive, shared, start, torn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked from a server"),
]
EPOCHS, KILLS = 200, 20


def kill_after(seconds, folder):
    """Start training, end it with SIGKILL after some seconds; whether it was still running."""
    process, connection = start(interruptible, folder, EPOCHS)
    assert receive(process, connection) == "ready"
    time.sleep(seconds)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def finish(folder):
    """Train to the end."""
    process, connection = start(interruptible, folder, EPOCHS)
    assert receive(process, connection) == "ready"
    seconds, epochs, weights = receive(process, connection)
    process.join()
    return seconds, epochs, safetensors.torch.load(weights)


def test_killed_at_twenty_moments_ends_the_same(tmp_path):
    seconds, epochs, expected = finish(tmp_path / "whole")
    assert epochs == EPOCHS
    moments, reached = random.Random(0), []
    for _ in range(KILLS):
        # In total at most 0.6 of the time that training takes, so that no process gets to the end even if
        # the machine has more time for it than before.
        assert kill_after(moments.uniform(0, 0.6 * seconds / KILLS), tmp_path / "killed")
        for path in Checkpoints(tmp_path / "killed").generations():
            reached.append(len(decode(path.read_bytes())["history"]))
    assert 0 < max(reached) < EPOCHS
    _, epochs, weights = finish(tmp_path / "killed")
    assert epochs == EPOCHS
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.parametrize("size", [1, 1000, 5000])
def test_ended_in_the_middle_of_a_file(size, tmp_path):
    process, _ = start(torn, tmp_path, 3, size)
    process.join()
    assert process.exitcode == -signal.SIGXFSZ
    (unfinished,) = tmp_path.glob(".seq2tens-*")
    assert unfinished.stat().st_size == size
    assert [len(decode(p.read_bytes())["history"]) for p in Checkpoints(tmp_path).generations()] == [2, 1]
    expected, _ = train(recipe())
    model, _ = train(recipe(), checkpoint=tmp_path)
    assert same_weights(model, expected)
    assert not unfinished.exists()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes_train_as_one(tmp_path):
    port = free_port()
    workers = [start(shared, rank, port, tmp_path) for rank in range(2)]
    results = [receive(*worker) for worker in workers]
    for process, _ in workers:
        process.join()
    assert None not in results
    model, result = double_run()
    assert results[0] == results[1]
    losses, weights = results[0]
    assert losses == pytest.approx([row["train_loss"] for row in result.history], rel=1e-9)
    for name, tensor in safetensors.torch.load(weights).items():
        expected = model.state_dict()[name]
        torch.testing.assert_close(
            tensor, expected, rtol=0, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )
