"""Files that are complete or as they were, whoever writes them and however a writer ends."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from seq2tens._checks import ArgumentError
from seq2tens._storage import (
    Saved,
    decode,
    encode,
    exclusive,
    new_file,
    new_folder,
    remove_leftovers,
    replacing,
    write_atomically,
)

BOTH = pytest.mark.parametrize("make", [new_file, new_folder])


@pytest.fixture
def umask():
    """Set it for a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_there_and_nothing_else(tmp_path):
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert names(tmp_path) == ["a"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"one")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert names(tmp_path) == ["a"]


def test_what_is_written_in_part_does_not_take_the_place_of_the_old_file(tmp_path):
    write_atomically(tmp_path / "a", b"one")

    def write_half():
        with replacing(tmp_path / "a") as file:
            file.write(b"tw")
            assert (tmp_path / "a").read_bytes() == b"one"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert (tmp_path / "a").read_bytes() == b"one"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_says(mask, expected, tmp_path, umask):
    umask(mask)
    write_atomically(tmp_path / "a", b"one")
    assert mode(tmp_path / "a") == expected


def test_a_file_keeps_its_mode(tmp_path):
    write_atomically(tmp_path / "a", b"one")
    (tmp_path / "a").chmod(0o640)
    write_atomically(tmp_path / "a", b"two")
    assert mode(tmp_path / "a") == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_every_time(exists, tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a", tmp_path / "link"
    link.symlink_to(target)
    if exists:
        target.write_bytes(b"old")
    for content in (b"one", b"two", b"three"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert names(tmp_path) == ["link", "real"]
    assert names(tmp_path / "real") == ["a"]


def test_a_pipe_is_written_to(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"one")
    reader.join()
    assert found == [b"one"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@BOTH
def test_what_a_writer_at_work_has_is_left_alone(make, tmp_path):
    with make(tmp_path, ".new-") as ours:
        remove_leftovers(tmp_path, ".new-")
        path = ours if isinstance(ours, Path) else Path(ours.name)
        assert path.exists()
    assert names(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from seq2tens import _storage
with getattr(_storage, sys.argv[1])(Path(sys.argv[2]), ".new-") as ours:
    if isinstance(ours, Path):
        (ours / "half").write_text("of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@BOTH
def test_what_a_killed_writer_has_left_is_removed(make, tmp_path):
    (tmp_path / ".newer").write_text("another's")
    run = subprocess.run([sys.executable, "-c", KILLED, make.__name__, tmp_path])
    assert run.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    remove_leftovers(tmp_path, ".new-")
    assert names(tmp_path) == [".newer"]


def test_the_next_file_removes_them(tmp_path):
    (tmp_path / ".seq2tens-0123").write_text("half of")
    write_atomically(tmp_path / "a", b"one")
    assert names(tmp_path) == ["a"]


WRITE = """
import sys
from pathlib import Path
from seq2tens._storage import write_atomically
print(flush=True)
sys.stdin.readline()
while not Path(sys.argv[2]).exists():
    write_atomically(Path(sys.argv[1]), sys.argv[3].encode() * 100_000)
"""
READS = 2_000


def started(code, *arguments):
    """Processes that have imported all they need, and wait for a line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", code, *a], **pipes) for a in arguments]
    for process in processes:
        process.stdout.readline()
    return processes


@pytest.mark.slow
def test_two_writers_never_tear_a_file(tmp_path):
    path, end = tmp_path / "a", tmp_path / "end"
    path.write_bytes(b"a" * 100_000)
    writers = started(WRITE, *([path, end, letter] for letter in "bc"))
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    found = set()
    for _ in range(READS):
        content = path.read_bytes()
        assert len(content) == 100_000
        assert len(set(content)) == 1
        found.add(content[:1])
    end.touch()
    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        writer.communicate()
    assert {b"b", b"c"} <= found
    assert names(tmp_path) == ["a", "end"]


COUNT = """
import sys
from pathlib import Path
from seq2tens._storage import exclusive
count = Path(sys.argv[1])
for _ in range(200):
    with exclusive(count.with_name("lock")):
        count.write_text(str(int(count.read_text()) + 1))
"""


@pytest.mark.slow
def test_one_process_at_a_time(tmp_path):
    (tmp_path / "count").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, tmp_path / "count"]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "600"
    assert names(tmp_path) == ["count"]


def test_a_lock_that_a_killed_process_has_left_is_taken(tmp_path):
    (tmp_path / "lock").touch()
    with exclusive(tmp_path / "lock"):
        assert names(tmp_path) == ["lock"]
    assert names(tmp_path) == []


def test_without_waiting_one_is_told_of_another(tmp_path):
    with (
        exclusive(tmp_path / "lock", wait=False) as first,
        exclusive(tmp_path / "lock", wait=False) as second,
    ):
        assert (first, second) == (True, False)
    with exclusive(tmp_path / "lock", wait=False) as again:
        assert again
    assert names(tmp_path) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_encoding_keeps_every_type(dtype):
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b": torch.ones((), dtype=dtype)}
    again = decode(encode(Saved(tensors, {"x": 0.1})))
    assert again.document == {"x": 0.1}
    assert all(torch.equal(tensors[k], again.tensors[k]) and tensors[k].dtype == dtype for k in tensors)


def test_every_flipped_bit_is_noticed():
    saved = Saved({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bool)}, {"x": 0.1})
    content = encode(saved)
    for place in range(len(content)):
        for bit in range(8):
            flipped = content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
            with pytest.raises(ArgumentError):
                decode(flipped)
    for end in range(len(content)):
        with pytest.raises(ArgumentError):
            decode(content[:end])
