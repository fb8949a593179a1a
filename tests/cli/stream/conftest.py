"""Models that streams are opened of, and rows for them."""

import pytest

from cli.shell import done, table

# fmt: off
TRAINED = [
    "--scaling", "channel", "--epochs", 2, "--set", "width=4", "--set", "depth=1", "--progress", "silent",
]
# fmt: on


@pytest.fixture(scope="session")
def model(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream") / "model"
    done("fit", train, "--out", folder, "--set", "fcn_width=4", "--set", "time_embedding=False", *TRAINED)
    return folder


@pytest.fixture(scope="session")
def unnamed(tmp_path_factory):
    """A model of channels without names and times."""
    folder = tmp_path_factory.mktemp("stream") / "unnamed"
    done("fit", "JapaneseVowels", "--model", "ls2t", "--out", folder, *TRAINED)
    return folder


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """Rows of several sequences with gaps."""
    return table(tmp_path_factory.mktemp("rows") / "rows.csv", n=6, labels=False, seed=5).read_text()
