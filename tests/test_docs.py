"""The code in the documentation: every block runs, page by page, and holds assertions."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from cli.shell import done

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    "classify.md",
    "data.md",
    "explain.md",
    "imputation.md",
    "irregular.md",
    "long-sequences.md",
    "lstm.md",
    "pandas.md",
    "polars.md",
    "random-ls2t.md",
    "streaming.md",
    "tools.md",
    "tutorial.md",
    "how-to.md",
    "theory.md",
    "universality.md",
]
SHORT_PAGES = ["coming-from.md", "get-started.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK_OR_COMMANDS = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _own_random_numbers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def blocks(page):
    """Each block with its language and the number of its first line in the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        (found[1], text.count("\n", 0, found.start(2)), found[2])
        for found in BLOCK_OR_COMMANDS.finditer(text)
    ]


def run_commands(block):
    for line in block.splitlines():
        program, verb, *arguments = shlex.split(line)
        assert program == "seq2tens"
        done(verb, *arguments, *(["--progress", "silent"] if verb in ("fit", "reproduce") else []))


@pytest.mark.parametrize("page", PAGES + SHORT_PAGES)
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks(page)
    assert len(code) > (3 if page in SHORT_PAGES else 5)
    namespace = {"__name__": page}
    for language, line, block in code:
        if language == "sh":
            run_commands(block)
        else:
            # blank lines in front, so that a traceback names the line of the page
            exec(compile("\n" * line + block, str(DOCS / page), "exec"), namespace)


@pytest.mark.slow
def test_what_is_on_the_page_of_the_reproduction_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands, code = (block for _, _, block in blocks("reproduce.md"))
    run_commands(commands)
    exec(compile(code, "reproduce.md", "exec"), {})


def test_the_commands_on_the_page_of_the_shell_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (_, _, block), *more = blocks("cli.md")
    assert not more
    run_commands(block)


def test_the_page_of_the_shell_has_every_option():
    sections = dict(
        re.findall(
            r"^## seq2tens ([\w ]+)\n(.*?)(?=^## |\Z)",
            (DOCS / "cli.md").read_text(),
            re.DOTALL | re.MULTILINE,
        )
    )
    assert list(sections) == [
        "choose",
        "fit",
        "predict",
        "evaluate",
        "explain",
        "impute",
        "stream",
        "info",
        "reproduce tsc",
        "reproduce mortality",
        "reproduce imputation",
        "report",
    ]
    for verb, section in sections.items():
        shown = set(re.findall(r"^  (--[\w-]+)", done(*verb.split(), "--help"), re.MULTILINE)) - {"--help"}
        assert shown == set(re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE)), verb


@pytest.mark.parametrize("page", PAGES + SHORT_PAGES)
def test_every_section_with_code_can_fail(page):
    sections = re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        if found := BLOCK.findall(section):
            assert any("assert" in block for block in found), section.splitlines()[0]
