import csv
import io
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.shell import COMMAND, QUICK, done, refused, table
from seq2tens import estimators
from seq2tens.cli import app
from seq2tens.data import load_dataset

TRAINED = [
    "--scaling",
    "channel",
    "--epochs",
    2,
    "--set",
    "width=4",
    "--set",
    "depth=1",
    "--progress",
    "silent",
]


@pytest.fixture(scope="module")
def model(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream") / "model"
    done("fit", train, "--out", folder, "--set", "fcn_width=4", "--set", "time_embedding=False", *TRAINED)
    return folder


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory):
    """A model of channels without names and times."""
    folder = tmp_path_factory.mktemp("stream") / "unnamed"
    done("fit", "JapaneseVowels", "--model", "ls2t", "--out", folder, *TRAINED)
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of several sequences with gaps."""
    return table(tmp_path_factory.mktemp("rows") / "rows.csv", n=6, labels=False, seed=5).read_text()


def run(model, text, *options):
    arguments = ["stream", str(model), *map(str, options)]
    return CliRunner().invoke(app, arguments, input=text, catch_exceptions=False)


def streamed(model, text, *options):
    """What comes out of a run that ends well."""
    result = run(model, text, *options)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def stopped(model, text, *options):
    """The sentence with which a run ends, and what came out before."""
    result = run(model, text, *options)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    return line.removeprefix("seq2tens: "), result.stdout


def parsed(text):
    return list(csv.DictReader(io.StringIO(text)))


def probabilities(found):
    return [[float(v) for name, v in row.items() if name.startswith("probability_")] for row in found]


def as_json(rows, shape):
    """Rows of CSV as lines of JSON."""
    lines = []
    for row in parsed(rows):
        values = {name: None if row[name] in ("", "NA") else float(row[name]) for name in ("x", "y")}
        lines.append(json.dumps(shape(row, values)))
    return "\n".join(lines) + "\n"


def test_the_last_row_of_a_sequence_gives_what_predict_gives(model, rows, tmp_path):
    (tmp_path / "rows.csv").write_text(rows)
    done("predict", model, tmp_path / "rows.csv", "--out", tmp_path / "p.csv")
    expected = parsed((tmp_path / "p.csv").read_text())
    found = parsed(streamed(model, rows))
    assert [int(row["row"]) for row in found] == list(range(1, len(parsed(rows)) + 1))
    assert [row["id"] for row in found] == [row["id"] for row in parsed(rows)]
    last = {row["id"]: row for row in found}
    assert list(last) == [row["id"] for row in expected]
    assert [row["prediction"] for row in last.values()] == [row["prediction"] for row in expected]
    np.testing.assert_allclose(probabilities(last.values()), probabilities(expected), rtol=1e-4)


def test_is_the_stream_of_the_library(model, rows):
    stream = estimators.load(model).stream()
    first = [row for row in parsed(rows) if row["id"] == "s0"]
    values = [
        [float(row[name]) if row[name] not in ("", "NA") else np.nan for name in ("x", "y")] for row in first
    ]
    expected = [
        stream.push([value], [float(row["time"])])[0].tolist()
        for value, row in zip(values, first, strict=True)
    ]
    assert probabilities(parsed(streamed(model, rows)))[: len(first)] == expected


def test_lines_of_json(model, rows):
    text = as_json(rows, lambda row, values: {"id": row["id"], "time": float(row["time"]), **values})
    found = [json.loads(line) for line in streamed(model, text, "--format", "jsonl").splitlines()]
    expected = parsed(streamed(model, rows))
    assert [list(row["probabilities"].values()) for row in found] == probabilities(expected)
    for row, other in zip(found, expected, strict=True):
        assert (str(row["row"]), row["id"], row["prediction"]) == (
            other["row"],
            other["id"],
            other["prediction"],
        )


def test_channels_without_names(unnamed):
    values = load_dataset("JapaneseVowels").test.sequences[0].values
    header = ",".join(f"c{i}" for i in range(values.shape[1]))
    lines = [",".join(map(str, row)) for row in values.tolist()]
    expected = parsed(streamed(unnamed, "\n".join([header, *lines])))
    assert "id" not in expected[0]
    for shape in (list, lambda row: {"values": row}):
        text = "\n".join(json.dumps(shape(row)) for row in values.tolist())
        found = [json.loads(line) for line in streamed(unnamed, text, "--format", "jsonl").splitlines()]
        assert [list(row["probabilities"].values()) for row in found] == probabilities(expected)


def test_every_nth_row_of_a_sequence(model, rows):
    every = parsed(streamed(model, rows))
    found = parsed(streamed(model, rows, "--every", 3))
    position, expected = {}, []
    for row in every:
        position[row["id"]] = position.get(row["id"], 0) + 1
        if position[row["id"]] % 3 == 0:
            expected.append(row)
    assert [row["row"] for row in found] == [row["row"] for row in expected]
    np.testing.assert_allclose(probabilities(found), probabilities(expected), rtol=1e-5)


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
    '{"id": [[]], "time": 1, "x": 2, "y": 3}': "`id` must be a text or a number, got [[]]",
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


def answers(text, format):
    """Predictions without the numbers of their rows."""
    found = parsed(text) if format == "csv" else [json.loads(line) for line in text.splitlines()]
    return [{name: value for name, value in row.items() if name != "row"} for row in found]


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
        ("id,time,x,y,y", "the header must not name two columns alike"),
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
    assert told == f"`--out` must be new, but {out} is there already; `--force` replaces it"
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


def test_wrong_options(model, train, tmp_path):
    for options, message in [
        (["--format", "xml"], "`--format` must be one of 'csv', 'jsonl', got 'xml'"),
        (["--every", 0], "`--every` must be at least 1, got 0"),
        (["--save-every", -1], "`--save-every` must be at least 1, got -1"),
        (["--on-error", "ask"], "`--on-error` must be one of 'stop', 'skip', got 'ask'"),
        (["--length", 0], "`--length` must be at least 1, got 0"),
        (["--out", tmp_path], "`--out` must be a file, got the folder"),
        (["--state", tmp_path / "no" / "state"], "`--state` must lie in a folder that exists"),
    ]:
        assert refused("stream", model, *options).startswith(message)
    assert "without model.json" in refused("stream", tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scaling", "channel"], "`--length` must be given for a network that sees the time"),
        (
            ["--set", "time_embedding=False"],
            "needs a model that does not standardise each sequence by itself",
        ),
    ],
)
def test_models_that_cannot_be_streamed(train, tmp_path, options, message):
    quick = [
        "--epochs",
        1,
        "--set",
        "width=4",
        "--set",
        "fcn_width=4",
        "--set",
        "depth=1",
        "--progress",
        "silent",
    ]
    done("fit", train, "--out", tmp_path / "model", *quick, *options)
    assert message in refused("stream", tmp_path / "model")


def test_all_that_stands_in_the_way_of_a_stream_is_told_at_once(train, tmp_path):
    done("fit", train, "--out", tmp_path / "model", *QUICK)
    sentence = refused("stream", tmp_path / "model")
    assert sentence.startswith("`seq2tens stream` needs a model that does not standardise each sequence")
    assert "; and `--length` must be given for a network that sees the time of a step" in sentence
    assert sentence.endswith(
        "; `seq2tens fit DATA --scaling channel --set time_embedding=False --out DIR` trains a network that "
        "can be streamed"
    )


def test_random_features_cannot_be_streamed(train, tmp_path):
    done("fit", train, "--out", tmp_path / "model", "--model", "random-ls2t")
    assert "needs a network, which can be fed step by step" in refused("stream", tmp_path / "model")


def begin(*arguments):
    """A run of its own, whose input is still to come."""
    return subprocess.Popen(
        [COMMAND, "stream", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


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
    assert errors.decode().startswith("seq2tens: stopped after row 5; the same command goes on")
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
