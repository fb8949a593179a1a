"""Models that earlier versions have saved."""

import json

import numpy as np
import pytest

from estimator_contract import SAME
from estimators.saved_models import FIXTURES, MODELS, said
from seq2tens.estimators import load

FORMATS = sorted(folder.name for folder in FIXTURES.iterdir())


def test_every_format_is_there():
    assert FORMATS == ["format-1", "format-2"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("version", FORMATS)
def test_they_say_what_they_said(version, name):
    model = load(FIXTURES / version / name)
    expected = json.loads((FIXTURES / version / "expected.json").read_text())[name]
    np.testing.assert_allclose(said(model), expected, **SAME)
    assert type(model).__name__ == model.notes_["kind"] == name
