"""The picture at the top of a page."""

from dataclasses import replace

from seq2tens.experiments.report.blocks import Part, Section
from seq2tens.experiments.report.overview import agreement, overview
from seq2tens.experiments.report.tables import HIGHER, LOWER, Entry, Table


def section(*entries, main=True):
    rows = tuple((Entry("model"), entry) for entry in entries)
    table = Table("t", "T", ("model", "score"), rows, last=(Entry("mean"), Entry("x", 9, 1)), main=main)
    return Section("demo", "A demonstration", (Part("All", ("Text.", table)),))


ENTRIES = (
    Entry("0.9", 0.9, 0.8, better=HIGHER),
    Entry("0.9", 0.9, 0.8, better=LOWER),
    Entry("0.7", 0.7, 0.8, better=LOWER),
    Entry("0.9", 0.9, 0.8, published_spread=0.2, better=HIGHER),
    Entry("not run", published=0.8),
    Entry("0.9", 0.9),
)


def test_numbers_of_main_tables_are_counted_by_what_they_mean():
    assert agreement(section(*ENTRIES)) == {"better": 2, "worse": 1, "similar": 1, "not run": 1}
    assert not agreement(section(*ENTRIES, main=False))


def test_the_picture_tells_the_counts():
    picture = overview([section(*ENTRIES), replace(section(), title="Nothing")])
    (axes,) = picture.figure.axes
    assert [text.get_text() for text in axes.texts] == ["A demonstration: 2 better, 1 similar, 1 worse"]
    assert [patch.get_width() for patch in axes.patches] == [0.5, 0.25, 0.25]


def test_nothing_to_compare_with_is_no_picture():
    assert overview([section(Entry("0.9", 0.9), Entry("not run", published=0.8))]) is None
