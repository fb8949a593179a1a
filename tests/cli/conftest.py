import pytest

from cli.shell import QUICK, done, table


@pytest.fixture(scope="session")
def train(tmp_path_factory):
    """A training table."""
    return table(tmp_path_factory.mktemp("data") / "train.csv")


@pytest.fixture(scope="session")
def model(train, tmp_path_factory):
    """A model trained on it by the shell."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    done("fit", train, "--out", folder, *QUICK)
    return folder
