"""Rows that are malformed or refused."""

import numpy as np
import pytest

from cli.stream.streams import answers, as_json, parsed, probabilities, run, stopped, streamed

BROKEN = {
    "s0,0.5,1.0": "must have 4 cells like the header, got 3",
    "s0,0.5,one,2": "column `x` must be a number, got 'one'",
    "s0,0.5,inf,2": "column `x` must be a number, got 'inf'",
    "s0,,1,2": "`time` must not be missing",
    "": "must have 4 cells like the header, got 0",
    '"s0,0.5,1,2': "must be CSV, got",
    "s0,-99,1,2": "`times` must not decrease, got -99.0 after",
}


@pytest.mark.parametrize("line", BROKEN)
def test_a_malformed_row_is_skipped_or_ends_the_run(model, rows, line):
    header, first, second, *rest = rows.splitlines()
    text = "\n".join([header, first, second, line, *rest])
    result = run(model, text, "--on-error", "skip")
    assert result.exit_code == 0
    note, total = result.stderr.splitlines()
    assert note.startswith(f"seq2tens: row 3 skipped: {BROKEN[line]}")
    assert total == f"seq2tens: 1 of {len(rows.splitlines())} rows skipped"
    found = parsed(result.stdout)
    assert [row["row"] for row in found[:4]] == ["1", "2", "4", "5"]
    assert probabilities(found) == probabilities(parsed(streamed(model, rows)))
    sentence, output = stopped(model, text)
    assert sentence.startswith(f"row 3: {BROKEN[line]}")
    assert len(parsed(output)) == 2


BROKEN_JSON = {
    "{": "must be JSON, got '{'",
    "3": "must be a list or an object, got int",
    "[1, 2]": "must be an object with a `time`, which the model needs, got a list",
    '{"time": 1, "x": 2}': "must have `y` (null where missing), got time, x",
    '{"time": null, "x": 2, "y": 3}': "`time` must not be missing",
    '{"time": 1, "x": "2", "y": 3}': "`x` must be a number or null, got '2'",
    '{"time": 1, "x": Infinity, "y": 3}': "`x` must be a number or null, got inf",
    '{"time": 1, "x": ' + "9" * 400 + ', "y": 3}': "`x` must be a number or null, got 99999",
    '{"time": -' + "9" * 400 + ', "x": 1, "y": 3}': "`time` must be a number or null, got -9999",
    '{"time": 1, "x": ' + "9" * 5000 + ', "y": 3}': "must be JSON, got",
    "[" * 10**5 + "]" * 10**5: "must be JSON, got '[[[[[[",
    '{"a":' * 10**5 + "1" + "}" * 10**5: "must be JSON, got",
    '{"id": [[]], "time": 1, "x": 2, "y": 3}': "`id` must be a string or a number, got [[]]",
    '{"time": 1, "' + "n" * 10**5 + '": 2}': "must have `x` (null where missing), got time, nnn",
}


@pytest.mark.parametrize("line", BROKEN_JSON)
def test_malformed_json(model, line):
    sentence, _ = stopped(model, line + "\n", "--format", "jsonl")
    assert sentence.startswith(f"row 1: {BROKEN_JSON[line]}")
    assert len(sentence) < 200


def malformed(rng, valid):
    """A line that is most likely no row: a mutation of one that is, or one of many kinds of nonsense."""
    kinds = [
        lambda: bytes(rng.integers(0, 256, rng.integers(0, 40)).astype(np.uint8)),
        lambda: valid[: rng.integers(len(valid))],
        lambda: valid.replace(b"1", b"9" * int(rng.integers(300, 6000))),
        lambda: valid.replace(b"0", rng.choice([b"1e999", b"-1e300", b"NaN", b"true", b'"\\ud800"', b"{}"])),
        lambda: b"[" * int(rng.integers(900, 5000)),
        lambda: valid.replace(b"0", b"[" * (n := int(rng.integers(1, 3000))) + b"]" * n, 1),
        lambda: valid + bytes(rng.integers(0, 256, 3).astype(np.uint8)),
        lambda: bytes(byte ^ (rng.random() < 0.05) * int(rng.integers(256)) for byte in valid),
        lambda: b"x" * int(rng.integers(10**5, 2 * 10**5)),
    ]
    return kinds[rng.integers(len(kinds))]().replace(b"\n", b" ").replace(b"\r", b" ")


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_hundreds_of_malformed_lines_are_as_if_absent(model, rows, tmp_path, format):
    rng = np.random.default_rng(0)
    good = rows.splitlines()[1:]
    if format == "jsonl":
        good = as_json(rows, lambda row, v: {"id": row["id"], "time": float(row["time"]), **v}).splitlines()
    head = b"id,time,x,y\n" if format == "csv" else b""
    lines = []
    for row in good:
        lines += [malformed(rng, row.encode()) for _ in range(12)] + [row.encode()]
    options = ["--format", format, "--on-error", "skip"]
    result = run(model, head + b"\n".join(lines), *options, "--state", tmp_path / "state")
    assert result.exit_code == 0
    *notes, total = result.stderr.splitlines()
    skipped = {int(note.split()[2]) for note in notes}
    assert all(note.split()[3] == "skipped:" for note in notes)
    assert total == f"seq2tens: {len(skipped)} of {len(lines)} rows skipped"
    assert 200 < len(skipped) == len(notes) < len(lines)
    kept = [line for number, line in enumerate(lines, start=1) if number not in skipped]
    again = streamed(model, head + b"\n".join(kept), "--format", format)
    assert len(answers(again, format)) == len(kept)
    assert answers(result.stdout, format) == answers(again, format)
    assert run(model, head + b"\n".join(lines), *options, "--state", tmp_path / "state").output == ""


def test_a_refused_row_does_not_begin_a_sequence(model, rows):
    header, first, second, *rest = rows.splitlines()
    text = "\n".join([header, first, second, "other,1,1e300,1e300", *rest])
    result = run(model, text, "--on-error", "skip")
    assert "row 3 skipped: `rows` must have values of the size of those in training" in result.stderr
    assert answers(result.stdout, "csv") == answers(streamed(model, rows), "csv")


def test_rows_refused_together(model, rows):
    header, *lines = rows.splitlines()
    text = "\n".join([header, "a,5,1,2", "a,4,1,2", "a,6,1,2", "a,7,1,2", "a,bad", *lines])
    result = run(model, text, "--every", 2, "--on-error", "skip")
    first, second, _ = result.stderr.splitlines()
    assert "row 2 skipped: `times` must not decrease, got 4.0 after 5.0 at index 1 (in rows since 1)" in first
    assert "row 5 skipped" in second
    assert [row["row"] for row in parsed(result.stdout)][:1] == ["4"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,time,x", "the header must name the columns x, y, time of the model, got id, time, x"),
        ("id,x,y", "the header must name the columns x, y, time of the model, got id, x, y"),
        ("id,time,x,y,y", "the header must not name a column twice"),
        ('id,"time,x,y', "the header must be CSV"),
    ],
)
def test_a_wrong_header(model, header, message):
    assert stopped(model, f"{header}\n1,2,3,4\n", "--on-error", "skip")[0].startswith(message)


def test_a_wrong_number_of_channels_without_names(unnamed):
    assert "the header must name 12 channels as in training, got a, b" in stopped(unnamed, "a,b\n1,2\n")[0]


def test_an_input_without_rows(model):
    assert streamed(model, "") == ""
    assert len(streamed(model, "id,time,x,y\n").splitlines()) == 1
    assert streamed(model, "", "--format", "jsonl") == ""
