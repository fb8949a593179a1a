"""The gallery: how scripts become pages, and that the scripts of the repository are fit for it."""

import re

import pytest
from docs_build import gallery

SOURCE = '''"""A title.

What it shows.
"""

# %%
# ## First
# Text.
x = 2
print(x)  # a comment in the code stays there

# %%
from pathlib import Path

_ = Path("x.svg").write_text("<svg/>")

# %%
# ![A picture of x](x.svg)
'''


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    folder = tmp_path / "scripts"
    folder.mkdir()
    monkeypatch.setattr(gallery, "SCRIPTS", folder)
    return folder


def test_a_script_becomes_a_page_with_its_output_and_pictures(scripts, tmp_path):
    (scripts / "small.py").write_text(SOURCE)
    gallery.build("small", tmp_path)
    page = (tmp_path / "small" / "index.md").read_text()
    assert page.startswith(
        "# A title\n\nWhat it shows.\n\n## First\nText.\n\n```python\nx = 2\nprint(x)  # a comment"
    )
    assert '```text title="Output"\n2\n```' in page
    assert "![A picture of x](x.svg)" in page
    assert "](small.py)" in page
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"index.md", "x.svg", "small.py"}


@pytest.mark.parametrize("slip", ["_ = 1 / 0\n", 'open("forgotten.png", "w").close()\n'])
def test_a_script_that_fails_or_hides_a_picture_leaves_no_page(scripts, tmp_path, slip):
    (scripts / "bad.py").write_text(SOURCE + "\n# %%\n" + slip)
    with pytest.raises((ZeroDivisionError, AssertionError)):
        gallery.build("bad", tmp_path)
    assert not (tmp_path / "bad").exists()


def test_every_script_is_in_the_gallery_and_in_the_menu():
    assert {path.stem for path in gallery.SCRIPTS.glob("*.py")} == set(gallery.ORDER)
    menu = (gallery.ROOT / "mkdocs.yml").read_text()
    assert re.findall(r"gallery/(\w+)/index.md", menu) == list(gallery.ORDER)


@pytest.mark.parametrize("name", gallery.ORDER)
def test_scripts_show_pictures_with_alternative_texts(name):
    script = gallery.parse((gallery.SCRIPTS / f"{name}.py").read_text())
    assert script.title
    assert script.text
    assert gallery.images(script)
    assert all(len(text) > 25 for text, _ in gallery.images(script))


@pytest.mark.parametrize("name", ["signatures", "change_of_order", "strings"])
def test_the_quick_scripts_run(name, tmp_path):
    gallery.build(name, tmp_path)
    assert (tmp_path / name / "index.md").stat().st_size > 1000
