import csv
import os
from pathlib import Path

import pytest


@pytest.fixture
def on_file():
    """Read a table of published numbers by name, in a test that is marked with `data("../published")`."""

    def read(name):
        path = Path(os.environ["SEQ2TENS_DATA"], "..", "published", name)
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    return read
