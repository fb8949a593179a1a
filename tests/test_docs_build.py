"""The parts of the documentation's build: arguments that are written out, formulas, the search."""

import re
from pathlib import Path

import pytest

from experiments.report.browser import PROGRAM, browser

griffe = pytest.importorskip("griffe")
from docs_build import arguments  # noqa: E402

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def package():
    extensions = griffe.load_extensions(arguments.WriteOutArguments)
    return griffe.load("seq2tens", search_paths=[str(ROOT / "src")], extensions=extensions)


@pytest.mark.parametrize(
    "name",
    [
        "FCNLS2TClassifier",
        "DeepLS2TClassifier",
        "FCNClassifier",
        "ResNetClassifier",
        "RandomLS2TClassifier",
        "RandomLS2TRegressor",
        "GPVAEImputer",
        "HIVAEImputer",
    ],
)
def test_every_argument_of_an_estimator_is_explained(package, name):
    cls = package["estimators"][name].final_target
    sections = cls.docstring.parse("google")
    (section,) = [part for part in sections if part.kind is griffe.DocstringSectionKind.parameters]
    explained = {argument.name for argument in section.value}
    assert {argument.name for argument in cls.parameters} - {"self"} == explained


def test_examples_are_sections(package):
    """`Example:` is none: it would be rendered as running text."""
    for path in (ROOT / "src").rglob("*.py"):
        if "cli" not in path.parts:
            assert "    Example:\n" not in path.read_text(), path


def test_formulas_become_mathml():
    mathml = pytest.importorskip("docs_build.mathml", exc_type=ImportError)
    page = mathml.on_page_content(r'<p>a <span class="arithmatex">\(x_1 &lt; y\)</span> b</p>')
    assert page.count("<math") == 1
    assert "<msub>" in page
    assert "arithmatex" not in page
    block = mathml.on_page_content('<div class="arithmatex">\\[\n\\sum_{i} x\n\\]</div>')
    assert 'display="block"' in block
    assert "<munder>" in block
    lines = mathml.on_page_content(
        r'<div class="arithmatex">\[\begin{align*} a &amp;= 1 \\ b &amp;= 2 \end{align*}\]</div>'
    )
    assert lines.count("<mtr>") == 2
    with pytest.raises(ValueError, match="must have known commands only"):
        mathml.on_page_content(r'<div class="arithmatex">\[\begin{aligned} a &amp;= 1 \end{aligned}\]</div>')


SHOUT = 'addEventListener("message", (event) => postMessage(event.data.toUpperCase()));'
ASK = """new Promise((done) => {
  const worker = new Worker("shout.js");
  worker.addEventListener("message", (event) => done(event.data));
  worker.postMessage("found");
})"""


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="needs Chromium")
def test_the_search_needs_no_server_and_no_network(tmp_path):
    """The theme's search is a worker, which browsers do not start for files: a script of ours stands in."""
    (script,) = re.findall(r"^ +- (javascripts/iframe-worker\.js)", (ROOT / "mkdocs.yml").read_text(), re.M)
    shim = (ROOT / "docs" / script).read_text()
    (tmp_path / "shout.js").write_text(SHOUT)
    (tmp_path / "page.html").write_text(f"<body><script>{shim}</script></body>")
    with browser() as page:
        page.open(tmp_path / "page.html")
        assert page.run(ASK) == "FOUND"
        assert page.errors == []
        assert all(url.startswith("file:") for url in page.requests)
