"""The picture of a terminal: an SVG without outside parts, for light and dark pages."""

from __future__ import annotations

from xml.etree import ElementTree

from trainmark.report.table import Cell, Field, Table, table_of
from trainmark.report.terminal_picture import picture


def a_table(name: str) -> Table:
    return table_of(
        [name], [Field("style")], title="title", answer=Cell("fast is faster", tone="good")
    )


def texts(svg: str) -> str:
    """Return the text that a reader sees, with ordinary spaces."""
    found = ElementTree.fromstring(svg).itertext()
    return "".join(found).replace("\xa0", " ")


def test_it_shows_the_command_and_its_tables() -> None:
    shown = texts(picture([a_table("idiomatic")], "trainmark compare out"))
    for words in ("$ trainmark compare out", "fast is faster", "style", "idiomatic"):
        assert words in shown


def test_nothing_is_loaded_from_elsewhere() -> None:
    svg = picture([a_table("x")], "trainmark compare")
    assert "url(" not in svg.replace("url(#", "")
    assert svg.count("http") == 1  # the name of the format


def test_each_theme_has_its_colour_for_each_style() -> None:
    style, _, _ = picture([a_table("x")], "trainmark compare").partition("</style>")
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    rules = [
        {line.split(" {")[0] for line in part.splitlines() if "fill:" in line}
        for part in (light, dark)
    ]
    assert len(rules[0]) > 3
    assert rules[0] == rules[1]
    assert "#ffffff" in light and "#ffffff" not in dark


def test_names_from_records_cannot_add_elements() -> None:
    svg = picture([a_table("<script>alert(1)</script>")], "trainmark compare '<b>'")
    assert "<script" not in svg
    assert "<script>alert(1)</script>" in texts(svg)
