"""The loop knows no model."""

from pathlib import Path

import seq2tens.training


def test_training_imports_no_model():
    files = sorted(Path(seq2tens.training.__file__).parent.glob("*.py"))
    assert len(files) > 10
    importing = [file.name for file in files if "seq2tens.models" in file.read_text()]
    assert importing == ["__init__.py"]  # where old names are told their new place
