"""The gallery: run the scripts of examples/gallery and write their pages, with output and figures.

    python -m docs_build.gallery              # all scripts, before `mkdocs build`
    python -m docs_build.gallery vowels ecg   # some of them

A script begins with a docstring: its title, then a summary. `# %%` begins a cell; the comment after it is
Markdown and shows figures that the script has saved. A script that fails ends the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SCRIPTS, PAGES = ROOT / "examples" / "gallery", ROOT / "docs" / "gallery"
ORDER = (
    "vowels",
    "handwriting",
    "ecg",
    "icu_explained",
    "ward_chart",
    "healing_digits",
    "live_stream",
    "change_of_order",
    "signatures",
    "strings",
    "custom_network",
    "own_benchmark",
    "regression",
)
HEAD = """# Gallery

Every example is a script that was executed when these pages were built; output and figures are its own.
Download it at the end of its page. The data come with the dependencies, are generated, or are read from the
folder `SEQ2TENS_DATA` if it is set.

"""
PICTURES = (".png", ".svg")
IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)]+)\)")
CELL = re.compile(r"^# %%\n", re.MULTILINE)
TEXT = re.compile(r"(?:#[^\n]*\n)*")


class Cell(NamedTuple):
    """A cell of a script: Markdown, then code."""

    text: str
    code: str


class Script(NamedTuple):
    """The parts of a script."""

    title: str
    text: str
    cells: list[Cell]


def parse(source: str) -> Script:
    """Split a script into its title, its text and its cells."""
    head, *rest = CELL.split(source)
    doc = ast.get_docstring(ast.parse(head))
    assert doc, "a gallery script must begin with a docstring"
    title, _, text = doc.partition("\n\n")
    return Script(title.removesuffix("."), text, [_cell(part) for part in rest])


def _cell(part: str) -> Cell:
    comment = TEXT.match(part)[0]  # type: ignore[index]
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in comment.splitlines())
    return Cell(text, part[len(comment) :].strip("\n"))


def images(script: Script) -> list[tuple[str, str]]:
    """The figures that a script shows: (alternative text, file)."""
    return [image for cell in script.cells for image in IMAGE.findall(cell.text)]


def execute(script: Script, name: str) -> list[str]:
    """Run the cells in this process and folder; return the output of each."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for number, cell in enumerate(script.cells):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(cell.code, f"{name}.py, cell {number + 1}", "exec"), names)
        printed.append(output.getvalue())
    return printed


def page(script: Script, name: str, printed: list[str], seconds: float) -> str:
    """The page of a script as Markdown."""
    parts = [f"# {script.title}", script.text]
    for cell, output in zip(script.cells, printed, strict=True):
        parts.append(cell.text)
        if cell.code:
            parts.append(f"```python\n{cell.code}\n```")
        if output.strip():
            parts.append(f'```text title="Output"\n{output.rstrip()}\n```')
    parts.append(
        f"[Download this script]({name}.py){{ download }} · it ran in {seconds:.0f} s when this page was "
        "built."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def build(name: str, folder: Path = PAGES) -> None:
    """Run one script in a temporary folder; keep its page, its figures and the script."""
    source = SCRIPTS / f"{name}.py"
    script = parse(source.read_text(encoding="utf-8"))
    target = folder / name
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        before = Path.cwd()
        os.chdir(work)
        try:
            printed = execute(script, name)
        finally:
            os.chdir(before)
        drawn = sorted(path for path in Path(work).iterdir() if path.suffix in PICTURES)
        shown = {file for _, file in images(script)}
        assert {path.name for path in drawn} == shown, (
            f"{name}: drawn {[p.name for p in drawn]}, shown {shown}"
        )
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in [*drawn, source]:
            shutil.copy(path, target)
    (target / "index.md").write_text(
        page(script, name, printed, time.perf_counter() - begin), encoding="utf-8"
    )


def index(folder: Path = PAGES) -> None:
    """Write the page with a figure of every example."""
    cards = []
    for name in ORDER:
        script = parse((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))
        alt, file = images(script)[0]
        link = f"[**{script.title}**]({name}/index.md)"
        summary = script.text.split("\n\n")[0].replace("\n", " ")
        cards.append(
            f'<figure markdown="1">\n[![{alt}]({name}/{file})]({name}/index.md)\n'
            f'<figcaption markdown="1">\n{link}<br>{summary}\n</figcaption>\n</figure>'
        )
    cards_text = "\n".join(cards)
    (folder / "index.md").write_text(
        f'{HEAD}<div class="gallery" markdown="1">\n{cards_text}\n</div>\n', encoding="utf-8"
    )


def main(names: list[str]) -> None:
    """Run each script in a separate process, so that scripts do not affect each other."""
    if names[:1] == ["--here"]:
        return build(names[1])
    PAGES.mkdir(parents=True, exist_ok=True)
    # on a busy machine, several threads that wait for each other are much slower than one
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    for name in names or ORDER:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "docs_build.gallery", "--here", name]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    index()
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
