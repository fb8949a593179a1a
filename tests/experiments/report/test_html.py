"""The page of a report in a real browser: it loads, sorts, fits a phone and prints."""

import re

import pytest

from experiments.report.browser import PROGRAM, browser
from experiments.tsc.results_table import partial, row, write
from house import ROOT
from seq2tens.experiments import report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]
ACCURACY = "#tsc-accuracy-fast"
CELLS = "#tsc-cells"


def page_of(folder, found):
    sources = report.read(write(folder / "tsc.csv", found))
    path = folder / "report.html"
    path.write_text(report.page(report.sections(sources, samples=200), sources, "command"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("page"), partial())


@pytest.fixture(scope="module")
def window():
    with browser() as page:
        yield page


@pytest.fixture
def page(window, path):
    """The page, loaded anew on a desktop's screen."""
    window.errors.clear()
    window.requests.clear()
    window.media()
    window.open(path)
    return window


def column(page, table, number):
    """The texts of a column, from the top."""
    code = f"Array.from(document.querySelector('{table} tbody').rows, r => r.cells[{number}].textContent)"
    return page.run(code)


def values(page, table, number):
    """The numbers of a column, None where there is none."""
    body = f"document.querySelector('{table} tbody')"
    found = page.run(f"Array.from({body}.rows, r => r.cells[{number}].dataset.value ?? null)")
    return [None if value is None else float(value) for value in found]


def sorting(page, table):
    code = f"Array.from(document.querySelectorAll('{table} thead th'), th => th.getAttribute('aria-sort'))"
    return page.run(code)


def head(table, number):
    return f"{table} thead th:nth-child({number + 1}) button"


def test_it_loads_without_errors_or_requests(page, path):
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("data:")] == [path.as_uri()]
    assert page.run("document.title").startswith("Seq2Tens")
    assert page.run("document.querySelectorAll('h1').length") == 1


def test_the_recorder_sees_errors_and_requests(window, tmp_path):
    """Else the test above could not fail."""
    broken = tmp_path / "broken.html"
    broken.write_text("<img src='missing.png'><script>console.error('x'); nothing()</script>")
    window.errors.clear()
    window.requests.clear()
    window.open(broken)
    assert len(window.requests) == 2
    assert len(window.errors) >= 2


def test_nothing_from_elsewhere_can_be_loaded(page):
    page.run("document.body.append(Object.assign(new Image(), {src: 'https://127.0.0.1:9/x.png'}))")
    page.run("new Promise(r => setTimeout(r, 100))")
    assert any("Content Security Policy" in error for error in page.errors)


def test_numbers_are_sorted_by_click(page):
    names = column(page, ACCURACY, 0)
    page.click(head(ACCURACY, 4))
    found = values(page, ACCURACY, 4)
    known = [value for value in found if value is not None]
    assert len(known) == 8
    assert known == sorted(known)
    assert found[8:] == [None] * 8  # what has not been run stays at the end …
    assert sorting(page, ACCURACY) == ["none"] * 4 + ["ascending"] + ["none"] * 2
    page.click(head(ACCURACY, 4))
    found = values(page, ACCURACY, 4)
    assert found[:8] == sorted(known, reverse=True)
    assert found[8:] == [None] * 8  # … in both directions
    assert sorting(page, ACCURACY)[4] == "descending"
    assert sorted(column(page, ACCURACY, 0)) == sorted(names)
    assert page.run(f"document.querySelector('{ACCURACY} tfoot th').textContent") == "mean (data sets)"
    assert page.errors == []


def test_texts_are_sorted_by_keyboard(page):
    page.run(f"document.querySelector('{head(CELLS, 0)}').focus()")
    page.press("Enter", "\r")
    names = column(page, CELLS, 0)
    assert names == sorted(names, key=str.lower)
    page.press(" ", " ")
    assert column(page, CELLS, 0) == sorted(names, key=str.lower, reverse=True)
    page.press("Tab")  # to the models
    page.press("Enter", "\r")
    assert sorting(page, CELLS)[:3] == ["none", "ascending", "none"]
    models = list(dict.fromkeys(column(page, CELLS, 1)))
    assert len(models) == 11  # each in one block
    assert models[0] == "1-NN DTW"
    assert models[-1] == "SMTS"


def test_other_tables_are_left_alone(page):
    before = column(page, CELLS, 0)
    page.click(head(ACCURACY, 0))
    page.click(head(ACCURACY, 0))
    assert column(page, ACCURACY, 0)[0] == "WalkvsRun"
    assert column(page, CELLS, 0) == before


def test_all_figures_are_there(page):
    boxes = page.run(
        "Array.from(document.querySelectorAll('figure.picture svg'), s => {"
        "const b = s.getBoundingClientRect(); return [b.width, b.height, s.querySelectorAll('path').length]})"
    )
    # the overview; two diagrams of ranks, boxes and points for both recipes; bars and triangles for one
    assert len(boxes) == 11
    assert all(width > 300 and height > 80 and paths > 10 for width, height, paths in boxes)


@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_and_the_contents_are_on_the_first_screen(page, width):
    page.resize(width, 844, mobile=width < 500)
    box = page.run("document.querySelector('.first svg').getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] < 844
    assert 300 < box["right"] <= width
    assert page.run("document.querySelector('nav h2').getBoundingClientRect().bottom") < 844


def shown(page, selector):
    """How many of these elements are not hidden."""
    code = f"Array.from(document.querySelectorAll('{selector}')).filter(e => e.checkVisibility()).length"
    return page.run(code)


def test_what_has_not_been_run_is_folded_away(page):
    assert shown(page, f"{ACCURACY} tbody tr") == 8
    assert page.run(f"document.querySelector('{ACCURACY} label').textContent").startswith("Show 8 rows")
    page.click(f"{ACCURACY} .unfold")
    assert shown(page, f"{ACCURACY} tbody tr") == 16
    page.click(f"{ACCURACY} label")
    assert shown(page, f"{ACCURACY} tbody tr") == 8


def test_texts_about_what_has_not_been_run_are_folded_away(page):
    assert page.run("document.querySelectorAll('details.missing').length") > 0
    assert shown(page, "details.missing p") == 0
    page.click("details.missing summary")
    assert shown(page, "details.missing p") > 0


def color(page, selector):
    return page.run(f"getComputedStyle(document.querySelector('{selector}')).color")


def test_colours_tell_better_from_worse_not_more_from_less(page):
    ranks = "#tsc-ranks-fast .change"
    marks = page.run(
        f"Array.from(document.querySelectorAll('{ranks}'), e => [e.className, e.textContent[0]])"
    )
    assert ["change better", "▼"] in marks
    assert ["change worse", "▲"] in marks
    better, worse = (color(page, f"{ranks}.{verdict}") for verdict in ("better", "worse"))
    assert better == color(page, f"{ACCURACY} .better")
    assert worse == color(page, f"{ACCURACY} .worse")
    assert better != worse


def test_a_report_of_all_results_is_small(window, tmp_path):
    sources = report.read(ROOT / "results")
    path = tmp_path / "all.html"
    path.write_text(report.page(report.sections(sources, samples=200), sources, "command"), encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    assert str(ROOT) not in path.read_text(encoding="utf-8")
    window.errors.clear()
    window.open(path, 390, 844)
    assert window.errors == []
    assert overflow(window) == 0
    titles = window.run("Array.from(document.querySelectorAll('nav h2'), e => e.textContent)")
    assert titles == ["Time series classification", "Mortality prediction", "Imputation"]


def overflow(page):
    """How much wider than the window the page is."""
    return page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_is_not_wider_than_the_screen(page, width):
    page.resize(width, 740, mobile=width < 500)
    assert page.run("innerWidth") == width
    assert overflow(page) == 0


def test_wide_tables_scroll_in_their_box_and_keep_their_first_column(page):
    page.resize(360, 740, mobile=True)
    box = f"document.querySelector('{ACCURACY} .scroll')"
    assert page.run(f"{box}.scrollWidth > {box}.clientWidth")
    place = f"document.querySelector('{ACCURACY} tr:not(.idle) th[scope=row]').getBoundingClientRect().left"
    before = page.run(place)
    page.run(f"{box}.scrollLeft = 200")
    assert page.run(f"{box}.scrollLeft") == 200
    assert page.run(place) == before
    assert page.run(place.replace("th[scope=row]", "td")) < before
    assert page.run(f"{box}.tabIndex") == 0


def test_print_shows_all_of_every_table(page):
    landscape = 1032  # pixels between the margins of a sheet
    page.resize(landscape, 740)
    page.media("print")
    cut = page.run(
        "Array.from(document.querySelectorAll('.scroll')).filter("
        "b => getComputedStyle(b).overflow !== 'visible' "
        "|| b.clientHeight < b.firstElementChild.getBoundingClientRect().height - 1).length"
    )
    assert cut == 0
    widths = page.run("Array.from(document.querySelectorAll('table'), t => t.getBoundingClientRect().right)")
    assert len(widths) == 17
    assert max(widths) <= landscape
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_it_prints(page, tmp_path):
    page.pdf(tmp_path / "report.pdf")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 5 < len(re.findall(rb"/Type\s*/Page\b", data)) < 60


def colors(page):
    return page.run(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )


def test_dark_where_it_is_wanted(page):
    light = colors(page)
    page.media(prefers_color_scheme="dark")
    dark = colors(page)
    assert [_lightness(color) > 128 for color in (*light, *dark)] == [False, True, True, False]
    ink = page.run("getComputedStyle(document.querySelector('figure.picture svg')).color")
    assert ink == dark[0]


def _lightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


def test_a_page_of_one_run(window, tmp_path):
    path = page_of(tmp_path, [row("<b>ECG</b>", "dtw", accuracy=0.5)])
    window.errors.clear()
    window.open(path)
    assert window.errors == []
    assert window.run("document.querySelectorAll('tbody b').length") == 0
    assert "<b>ECG</b>" in column(window, "#tsc-accuracy-others", 0)
