"""Where models are saved: links, modes, what killed processes leave, and several that save at once."""

import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from estimators.saved_models import FIXTURES, said
from seq2tens.estimators import load

SAVED = FIXTURES / "format-2"
FILES = ["model.json", "model.safetensors"]


def model(name="MeanImputer"):
    return load(SAVED / name)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_every_time(exists, tmp_path):
    (tmp_path / "disk").mkdir()
    link, target = tmp_path / "model", tmp_path / "disk" / "real"
    link.symlink_to(target)
    if exists:
        model().save(target)
    for name in ("LinearImputer", "MeanImputer", "ForwardImputer"):
        model(name).save(link)
        assert link.is_symlink()
        assert type(load(link)).__name__ == type(load(target)).__name__ == name
    assert names(tmp_path) == ["disk", "model"]
    assert names(tmp_path / "disk") == ["real"]


def test_a_link_to_what_a_killed_process_has_moved_aside(tmp_path):
    (tmp_path / "model").symlink_to(tmp_path / "real")
    model().save(tmp_path / ".real.previous")
    np.testing.assert_array_equal(said(load(tmp_path / "model")), said(model()))


@pytest.mark.parametrize(("mask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_modes_are_those_that_the_umask_says(mask, folder, file, tmp_path):
    before = os.umask(mask)
    try:
        model().save(tmp_path / "model")
    finally:
        os.umask(before)
    assert mode(tmp_path / "model") == folder
    assert {mode(tmp_path / "model" / name) for name in FILES} == {file}


def test_a_model_that_is_replaced_keeps_its_modes(tmp_path):
    target = tmp_path / "model"
    model().save(target)
    for path, number in ((target, 0o750), (target / FILES[0], 0o640), (target / FILES[1], 0o600)):
        path.chmod(number)
    model("LinearImputer").save(target)
    assert [mode(path) for path in (target, *(target / name for name in FILES))] == [0o750, 0o640, 0o600]


KILLED = """
import os, signal, sys
from seq2tens.estimators import load
model = load(sys.argv[1])
type(model)._facts = lambda self: os.kill(os.getpid(), signal.SIGKILL)
model.save(sys.argv[2])
"""


@pytest.mark.slow
def test_what_a_killed_process_has_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".model.mine").mkdir()
    run = subprocess.run([sys.executable, "-c", KILLED, SAVED / "MeanImputer", tmp_path / "model"])
    assert run.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    model().save(tmp_path / "other")
    assert len(names(tmp_path)) == 3
    model().save(tmp_path / "model")
    assert names(tmp_path) == [".model.mine", "model", "other"]


SAVE = """
import sys
from pathlib import Path
from seq2tens.estimators import load
model = load(sys.argv[1])
while not Path(sys.argv[3]).exists():
    model.save(sys.argv[2])
"""


@pytest.mark.slow
def test_two_processes_that_save_and_one_that_loads(tmp_path):
    kinds, target, end = ("MeanImputer", "LinearImputer"), tmp_path / "model", tmp_path / "end"
    model("ForwardImputer").save(target)
    expected = {name: said(model(name)) for name in (*kinds, "ForwardImputer")}
    processes = [subprocess.Popen([sys.executable, "-c", SAVE, SAVED / name, target, end]) for name in kinds]
    found = {"ForwardImputer": 0}
    try:
        while sum(found.values()) < 200 or len(found) < 3:
            again = load(target)
            name = type(again).__name__
            np.testing.assert_array_equal(said(again), expected[name])
            found[name] = found.get(name, 0) + 1
            assert [process.poll() for process in processes] == [None, None]
    finally:
        end.touch()
        codes = [process.wait() for process in processes]
    assert codes == [0, 0]
    assert names(tmp_path) == ["end", "model"]
