"""Runs of `seq2tens stream`, and what comes out of them."""

import csv
import io
import json
import os
import subprocess

from typer.testing import CliRunner

from cli.shell import COMMAND
from seq2tens.cli import app


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


def begin(*arguments):
    """A run of its own, whose input is still to come."""
    return subprocess.Popen(
        [COMMAND, "stream", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def parsed(text):
    return list(csv.DictReader(io.StringIO(text)))


def probabilities(found):
    return [[float(v) for name, v in row.items() if name.startswith("probability_")] for row in found]


def answers(text, format):
    """Predictions without the numbers of their rows."""
    found = parsed(text) if format == "csv" else [json.loads(line) for line in text.splitlines()]
    return [{name: value for name, value in row.items() if name != "row"} for row in found]


def as_json(rows, shape):
    """Rows of CSV as lines of JSON."""
    lines = []
    for row in parsed(rows):
        values = {name: None if row[name] in ("", "NA") else float(row[name]) for name in ("x", "y")}
        lines.append(json.dumps(shape(row, values)))
    return "\n".join(lines) + "\n"
