import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module", ["classifiers", "features", "imputers.interpolation", "imputers.ls2t", "imputers.vae", "sktime"]
)
def test_examples_of_docstrings(module):
    if module == "sktime":
        pytest.importorskip("sktime", reason="the extra [sktime] is not installed")
    result = doctest.testmod(importlib.import_module(f"seq2tens.estimators.{module}"))
    assert result.attempted > 2
    assert result.failed == 0
