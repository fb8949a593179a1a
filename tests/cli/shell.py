"""The shell for tests: run a verb, and files for it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from seq2tens.cli import app

COMMAND = Path(sys.executable).with_name("seq2tens")
# The smallest network, and two epochs of it.
QUICK = [
    "--epochs",
    2,
    "--set",
    "width=4",
    "--set",
    "fcn_width=4",
    "--set",
    "depth=1",
    "--progress",
    "silent",
]


def run(*arguments):
    """Run a verb in this process; errors that are not the user's come through."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def done(*arguments):
    """What a verb that ends well has printed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert told(result) == []
    return result.stdout


def told(result):
    """Lines of stderr but for the one that names the channels of a table."""
    return [line for line in result.stderr.splitlines() if not line.startswith("seq2tens: channels are ")]


def refused(*arguments):
    """The one sentence with which a verb refuses."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    lines = told(result)
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("seq2tens: ")
    return lines[0].removeprefix("seq2tens: ")


def start(*arguments):
    """Start a verb in a process of its own."""
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def table(path, n=12, labels=True, seed=0, columns=("x", "y")):
    """A long table of waves: unequal lengths (one of a single step), missing cells, real times."""
    rng = np.random.default_rng(seed)
    lines = [",".join(["id", "time", *columns, *(["label"] if labels else [])])]
    for i in range(n):
        clock = np.cumsum(rng.random(1 if i == 1 else rng.integers(3, 9)))
        for step, now in enumerate(clock):
            cells = {"x": f"{np.sin(now * (5 if i % 2 else 1)):.4f}", "y": f"{rng.normal():.4f}"}
            if step > 0 and rng.random() < 0.2:
                cells[columns[step % 2]] = "" if rng.random() < 0.5 else "NA"
            label = ["fast, waves" if i % 2 else "slow"] if labels else []
            row = [f"s{i}", f"{now:.3f}", *(cells[name] for name in columns)]
            lines.append(",".join([*row, *(f'"{text}"' for text in label)]))
    path.write_text("\n".join(lines) + "\n")
    return path
