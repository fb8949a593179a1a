"""States: a stream that goes on where the last one ended."""

import os
import subprocess

import pytest

from cli.stream.streams import stopped, streamed
from seq2tens import estimators


@pytest.mark.parametrize("every", [1, 3])
def test_goes_on_from_a_state(model, rows, tmp_path, every):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    expected = streamed(model, rows, "--every", every)
    options = ["--out", out, "--state", state, "--every", every]
    header, *lines = rows.splitlines(keepends=True)
    for count in (5, 5, 7, 12, len(lines)):  # the same input, which has grown
        streamed(model, header + "".join(lines[:count]), *options)
    assert out.read_text() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "state"]


def test_goes_on_with_an_input_that_begins_after_the_state(model, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    header, *lines = rows.splitlines(keepends=True)
    for part in (lines[:8], lines[8:9], lines[9:]):
        streamed(model, header + "".join(part), "--out", out, "--state", state, "--continue", "--every", 2)
    assert out.read_text() == streamed(model, rows, "--every", 2)


def test_what_was_written_after_the_state_is_written_again(model, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    header, *lines = rows.splitlines(keepends=True)
    streamed(model, header + "".join(lines[:9]), "--out", out, "--state", state)
    kept = state.read_bytes()
    streamed(model, header + "".join(lines[:20]), "--out", out, "--state", state)
    state.write_bytes(kept)  # as if killed before the state was saved
    with out.open("a") as file:
        file.write("half a li")
    streamed(model, rows, "--out", out, "--state", state)
    assert out.read_text() == streamed(model, rows)


def test_a_fatal_row_is_read_again_when_it_is_mended(model, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    lines = rows.splitlines(keepends=True)
    broken = [*lines[:6], "nonsense\n", *lines[7:]]
    assert stopped(model, "".join(broken), "--out", out, "--state", state)[0].startswith("row 6: ")
    streamed(model, rows, "--out", out, "--state", state)
    assert out.read_text() == streamed(model, rows)


def test_to_stdout_nothing_is_written_twice(model, rows, tmp_path):
    header, *lines = rows.splitlines(keepends=True)
    first = streamed(model, header + "".join(lines[:9]), "--state", tmp_path / "state")
    assert first + streamed(model, rows, "--state", tmp_path / "state") == streamed(model, rows)


def test_an_old_file_is_replaced_only_if_so_asked(model, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    out.write_text("precious")
    told, _ = stopped(model, rows, "--out", out, "--state", state)
    assert told == f"`--out` must be new, but {out} exists already; `--force` replaces it"
    assert out.read_text() == "precious"
    streamed(model, rows, "--out", out, "--force")
    assert out.read_text() == streamed(model, rows) == streamed(model, rows, "--out", "-")
    assert stopped(model, rows, "--out", tmp_path / "out.jsonl")[0].startswith("`--out` must end in .csv, ")


def test_a_pipe_is_written_to_whatever_the_state_has_seen(model, rows, tmp_path):
    out, state = tmp_path / "pipe", tmp_path / "state"
    os.mkfifo(out)
    header, *lines = rows.splitlines(keepends=True)
    reader = subprocess.Popen(["cat", out], stdout=subprocess.PIPE)
    with out.open("wb"):  # the reader stays as long as there is a writer
        for count in (7, len(lines)):
            streamed(model, header + "".join(lines[:count]), "--out", out, "--state", state)
    assert reader.communicate(timeout=60)[0].decode() == streamed(model, rows)
    assert out.is_fifo()


def test_a_state_that_does_not_fit(model, unnamed, rows, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    options = ["--out", out, "--state", state]
    streamed(model, rows, *options)
    lines = rows.splitlines(keepends=True)
    for text, changed, message in [
        (rows, ["--every", 2], f"`--every` must be 1 as in {state}, got 2"),
        (rows, ["--format", "jsonl", "--out", "-"], f"`--format` must be csv as in {state}, got jsonl"),
        (rows, ["--length", 99], "`--state` must come from a stream with length=99, got none"),
        ("".join(lines[:3]), [], "the input must begin with the"),
    ]:
        assert stopped(model, text, *options, *changed)[0].startswith(message)
    assert "`--state` must come from a stream of this module" in stopped(unnamed, rows, *options)[0]
    out.write_text("row")
    assert "`--out` must hold the" in stopped(model, rows, *options)[0]
    state.write_text("nonsense")
    assert "`--state` must be the file of a saved state" in stopped(model, rows, *options)[0]
    estimators.load(model).stream().save(state)
    assert "`--state` must be a state of `seq2tens stream`" in stopped(model, rows, *options)[0]
