"""For the engineer who deploys by ONNX and HTTP: the page, the service and its load test, on loopback."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from seq2tens.data import load_dataset
from seq2tens.estimators import RandomLS2TClassifier

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "deploy.md"
EXAMPLES = ROOT / "examples"


def python_blocks():
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_page_shows_the_service_and_it_is_short():
    code = (EXAMPLES / "service.py").read_text()
    assert code in python_blocks()
    assert len([line for line in code.splitlines() if line.strip()]) <= 30


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in python_blocks() if "FastAPI" not in block]
    assert len(blocks) >= 4
    namespace = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A fitted model, test sequences, and the address of the service that predicts by its ONNX file."""
    train, test = load_dataset("JapaneseVowels")
    model = RandomLS2TClassifier(n_blocks=4, random_state=0).fit(train.sequences, train.labels)
    path = tmp_path_factory.mktemp("service") / "model.onnx"
    model.to_onnx(path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, cwd=EXAMPLES, env={**os.environ, "MODEL": str(path)}) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url, process)
            yield model, test.sequences, url
        finally:
            process.terminate()


def wait_until_ready(url, process, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            httpx.get(f"{url}/openapi.json")
            return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the service has not started")


def ask(url, sequences):
    return httpx.post(f"{url}/predict", json={"sequences": sequences}, timeout=60)


@pytest.mark.slow
def test_the_service_says_what_the_model_says(served):
    model, sequences, url = served
    answer = ask(url, [sequence.tolist() for sequence in sequences]).raise_for_status().json()
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(sequences), rtol=0, atol=1e-5)
    assert answer["labels"] == model.predict(sequences).tolist()
    missing = sequences[0].values.tolist()
    missing[1][2] = None
    array = np.array(missing, dtype=float).T
    answer = ask(url, [missing]).raise_for_status().json()
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba([array]), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sequences", [[], [[]], [[[1.0]]], "text"])
def test_the_service_refuses(served, sequences):
    _, _, url = served
    assert ask(url, sequences).status_code == 422


@pytest.mark.slow
def test_the_load_test(served, capsys, monkeypatch):
    _, _, url = served
    spec = importlib.util.spec_from_file_location("load_test", EXAMPLES / "load_test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["load_test.py", url, "--channels", "12", "--requests", "100"])
    module.main()
    assert "100 requests answered" in capsys.readouterr().out
