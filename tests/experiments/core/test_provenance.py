"""Where a result comes from, and what it took."""

import subprocess
import sys

import pytest

import seq2tens
from seq2tens.experiments.core import provenance


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", folder, *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_says_whether_the_tree_was_changed(tmp_path, monkeypatch):
    home = tmp_path / "src" / "seq2tens"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    monkeypatch.setattr(seq2tens, "__file__", str(home / "__init__.py"))
    assert provenance.commit() == ""
    git(tmp_path, "init", "--quiet")
    assert provenance.commit() == ""  # there is none yet
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    short = git(tmp_path, "rev-parse", "--short", "HEAD")
    assert provenance.commit() == short
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "tsc.csv").write_text("new")
    assert provenance.commit() == short
    (home / "new.py").write_text("")
    assert provenance.commit() == f"{short}+"


PEAK = """
import subprocess, sys
if len(sys.argv) == 1:
    memory = bytearray(1200 * 2**20)
    subprocess.run([sys.executable, __file__, "child"], check=True)
else:
    from seq2tens.experiments.core.provenance import peak_bytes
    print(peak_bytes() / 2**20)
"""


@pytest.mark.slow
def test_peak_memory_is_that_of_the_process_alone(tmp_path):
    (tmp_path / "peak.py").write_text(PEAK)
    shown = subprocess.run(
        [sys.executable, tmp_path / "peak.py"], capture_output=True, text=True, check=True
    ).stdout
    assert 20 < float(shown) < 900
