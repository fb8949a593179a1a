"""The code in the documentation: every Python block runs, page by page, and holds assertions."""

import re
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _own_random_numbers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def blocks(page):
    """Each block with the number of its first line in the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", ["tutorial.md", "how-to.md", "theory.md"])
def test_code_runs(page):
    code = blocks(page)
    assert len(code) > 5
    namespace = {"__name__": page}
    for line, block in code:
        # blank lines in front, so that a traceback names the line of the page
        exec(compile("\n" * line + block, str(DOCS / page), "exec"), namespace)


@pytest.mark.parametrize("page", ["tutorial.md", "how-to.md", "theory.md"])
def test_every_section_with_code_can_fail(page):
    sections = re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        if found := BLOCK.findall(section):
            assert any("assert" in block for block in found), section.splitlines()[0]
