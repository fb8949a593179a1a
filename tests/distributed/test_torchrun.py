"""Scripts under torchrun, processes that are killed in the middle, and going on from there."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from distributed.train_script import EPOCHS, data, make
from seq2tens.estimators import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix"),
]
SCRIPT = Path(__file__).with_name("train_script.py")
TORCHRUN = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--nproc-per-node",
    "2",
    "--master-addr",
    "127.0.0.1",
]
QUIET = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
SECONDS = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def torchrun(folder):
    folder.mkdir(exist_ok=True)
    with open(folder / "stderr", "w") as stderr:
        return subprocess.Popen(
            [*TORCHRUN, "--master-port", free_port(), str(SCRIPT), str(folder), "2"],
            env=os.environ | QUIET,
            stderr=stderr,
        )


def ended(process, folder, seconds=SECONDS):
    """What a process that ends within some seconds has said.

    Seconds are counted in naps: a machine that stops everything for a while stops the count too.
    """
    for _ in range(10 * seconds):
        if process.poll() is not None:
            return (folder / "stderr").read_text()
        time.sleep(0.1)
    process.kill()
    process.wait()
    pytest.fail(f"still running after {seconds} s")


def wait_for_epoch(epoch, folder):
    """Until a checkpoint of that epoch, or of a later one, is there."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if max((int(path.stem[6:]) for path in folder.glob("checkpoint/epoch-*")), default=0) >= epoch:
            return
        time.sleep(0.01)
    pytest.fail(f"no epoch {epoch} in {folder}")


def kill(rank, folder):
    os.kill(int((folder / f"process-{rank}").read_text()), signal.SIGKILL)


def results(folder):
    return [json.loads((folder / f"result-{rank}.json").read_text()) for rank in range(2)]


def test_killed_and_resumed_is_as_not_killed_is_as_one_process(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = torchrun(whole)
    told = ended(process, whole)
    assert process.returncode == 0, told
    assert told.count(f"epoch {EPOCHS}/{EPOCHS}") == 1  # the first process speaks for all

    process = torchrun(killed)
    wait_for_epoch(3, killed)
    kill(1, killed)
    told = ended(process, killed, seconds=30)
    assert process.returncode != 0
    root = told.partition("Root Cause")[2]
    assert "rank      : 1" in root
    assert "SIGKILL" in root
    assert not (killed / "model").exists()

    process = torchrun(killed)
    told = ended(process, killed)
    assert process.returncode == 0, told
    expected = results(whole)
    assert expected[0] == expected[1]
    assert results(killed) == expected
    written = sorted(path.name for path in (killed / "model").iterdir())
    assert written == ["README.md", "model.json", "model.safetensors"]
    check_one_process(tmp_path, whole, expected[0])


def check_one_process(tmp_path, whole, together):
    """Float32 weights agree to its precision; the saved model works in a process by itself."""
    X, y = data()
    alone = make(tmp_path / "alone", 1).set_params(progress="silent").fit(X, y)
    for name, tensor in alone.network_.state_dict().items():
        weight = torch.tensor(together["weights"][name])
        torch.testing.assert_close(
            weight, tensor, rtol=1e-6, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert load(whole / "model").predict(X).tolist() == together["predicted"] == alone.predict(X).tolist()
