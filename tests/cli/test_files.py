"""Where results go: files, links, pipes, devices and stdout, the same in every verb."""

import os
import subprocess
import threading
import tty
from pathlib import Path

import pytest

from cli.shell import COMMAND, done, refused, run, table
from experiments.tsc.results_table import row, write


@pytest.fixture(scope="module")
def verbs(model, train, tmp_path_factory):
    """For each verb that writes one file: its command up to the file's name, and the suffix."""
    folder = tmp_path_factory.mktemp("files")
    results = folder / "results.csv"
    write(results, [row("ECG", "fcn128", accuracy=0.9)])
    gaps = table(folder / "gaps.csv", n=3)
    return {
        "predict": (["predict", model, train, "--out"], ".csv"),
        "impute": (["impute", gaps, "--model", "linear", "--out"], ".csv"),
        "evaluate": (["evaluate", model, train, "--json"], ".json"),
        "report": (["report", results, "--out"], ".html"),
    }


VERBS = ["predict", "impute", "evaluate", "report"]


def content(command, suffix, folder):
    """What the verb writes into a new file."""
    path = folder / f"plain{suffix}"
    done(*command, path)
    return path.read_bytes()


def same(one, other):
    """Whether two results agree; a report names its own place and time."""
    return one == other or (one[:15] == other[:15] == b"<!doctype html>")


def in_background(read):
    """A thread, and the list that it puts what it has read into."""
    found = []
    thread = threading.Thread(target=lambda: found.append(read()), daemon=True)
    thread.start()
    return thread, found


def read_exactly(descriptor, size):
    content = b""
    while len(content) < size:
        content += os.read(descriptor, 1024)
    return content


@pytest.mark.parametrize("verb", VERBS)
def test_a_pipe_is_written_to_and_stays(verbs, tmp_path, verb):
    command, suffix = verbs[verb]
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    thread, found = in_background(pipe.read_bytes)
    assert f"saved {pipe}\n" in done(*command, pipe)
    thread.join(timeout=60)
    assert pipe.is_fifo()
    assert same(found[0], content(command, suffix, tmp_path))


@pytest.mark.parametrize("verb", VERBS)
def test_behind_a_link_the_file_is_replaced_and_the_link_stays(verbs, tmp_path, verb):
    command, suffix = verbs[verb]
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / f"real{suffix}", tmp_path / f"link{suffix}"
    link.symlink_to(target)
    done(*command, link)  # its target is not there yet
    target.write_text("old")
    target.chmod(0o640)
    assert "must be new" in refused(*command, link)
    assert target.read_text() == "old"
    done(*command, link, "--force")
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert same(target.read_bytes(), content(command, suffix, tmp_path))
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_a_device_is_written_to_and_stays(verbs, tmp_path):
    expected = content(*verbs["predict"], tmp_path)
    terminal, device = os.openpty()  # a device that is our own
    tty.setraw(device)
    link = tmp_path / "device"
    link.symlink_to(os.ttyname(device))
    thread, found = in_background(lambda: read_exactly(terminal, len(expected)))
    done(*verbs["predict"][0], link)
    thread.join(timeout=60)
    assert found == [expected]
    assert link.is_symlink()
    os.close(terminal)
    os.close(device)


@pytest.mark.parametrize("verb", VERBS)
def test_a_dash_is_stdout_and_all_else_goes_to_stderr(verbs, tmp_path, verb, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, suffix = verbs[verb]
    result = run(*command, "-")
    assert result.exit_code == 0, result.output
    assert same(result.stdout_bytes, content(command, suffix, tmp_path))
    assert "saved" not in result.stderr
    assert not Path("-").exists()
    assert done("--version").count("\n") == 1  # stdout is given back


@pytest.mark.slow
def test_stdout_by_its_name_is_appended_to_not_replaced(verbs, tmp_path):
    command, log = verbs["predict"][0], tmp_path / "log"
    log.write_text("earlier\n")
    for name in ("/dev/stdout", log):
        with log.open("ab") as stdout:
            subprocess.run([COMMAND, *map(str, command), name], stdout=stdout, check=True)
    assert log.read_bytes() == b"earlier\n" + 2 * content(*verbs["predict"], tmp_path)
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.parametrize("verb", VERBS)
def test_files_are_replaced_only_if_so_asked(verbs, tmp_path, verb):
    command, suffix = verbs[verb]
    path = tmp_path / f"there{suffix}"
    path.write_text("precious")
    option = command[-1]
    assert refused(*command, path) == (
        f"`{option}` must be new, but {path} exists already; `--force` replaces it"
    )
    assert path.read_text() == "precious"
    done(*command, path, "--force")
    assert path.read_text() != "precious"


@pytest.mark.parametrize("verb", VERBS)
def test_the_suffix_says_the_format_or_is_refused(verbs, tmp_path, verb):
    command, suffix = verbs[verb]
    for name in ("result.xlsx", "result"):
        told = refused(*command, tmp_path / name)
        assert told.startswith(f"`{command[-1]}` must end in {suffix}")
        assert told.endswith(f", got {tmp_path / name}")


def test_pictures_and_folders_follow_the_same_rules(verbs, model, train, tmp_path):
    picture = tmp_path / "c.png"
    picture.write_text("precious")
    replaced = "exists already; `--force` replaces it"
    assert replaced in refused("evaluate", model, train, "--confusion", picture)
    assert replaced in refused("fit", train, "--out", tmp_path / "m", "--curves", picture)
    why = ["explain", model, train, "--id", "s1", "--out", tmp_path / "why"]
    done(*why)
    assert refused(*why) == f"`--out` must be new, but {tmp_path / 'why' / 'explanation.csv'} {replaced}"
    parts = [*verbs["report"][0][:2], "--parts", tmp_path / "parts"]
    done(*parts)
    assert replaced in refused(*parts)
    done(*why, "--force")
    done(*parts, "--force")
    done("evaluate", model, train, "--confusion", picture, "--force")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_a_place_for_a_result(verbs, model, train, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    why = ["explain", model, train, "--id", "s1"]
    assert refused("fit", train, "--out", pipe) == f"`--out` must be a folder, got the file {pipe}"
    assert refused(*why, "--out", pipe) == f"`--out` must be a folder, got the file {pipe}"
    assert refused("fit", train, "--out", "-").startswith("`--out` must be a folder, got -")
    cell = ["reproduce", "tsc", "--models", "dtw", "--datasets", "JapaneseVowels"]
    for command in (["stream", model, "--state"], [*cell, "--out"]):
        assert refused(*command, pipe) == (
            f"`{command[-1]}` must be a regular file, because it is read again, got {pipe}"
        )
    assert pipe.is_fifo()
