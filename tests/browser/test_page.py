"""The report page in a real browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.browser.conftest import Window
from tests.browser.samples import hostile_records, records_of_every_chart
from tests.records import a_trial
from trainmark.analysis.comparison import compare
from trainmark.record.record import Record
from trainmark.report.page import page


def made(records: Sequence[Record], **changes: Any) -> str:
    return page(records, compare(records), **changes)


@pytest.fixture(scope="module")
def html() -> str:
    """Everything that can be drawn."""
    return made(records_of_every_chart())


def test_it_opens_from_a_file_and_makes_no_request(window: Window, html: str) -> None:
    opened = window.open(html)
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in opened.requests if url.startswith("file:")]) == 1


def test_every_chart_has_marks_and_words(window: Window, html: str) -> None:
    folded = window.open(html).page.query_selector_all(".drawing svg")
    opened = window.open(html, unfolds=True)
    drawings = opened.page.query_selector_all(".drawing")
    assert len(drawings) > 15 > len(folded) > 0
    for drawing in drawings:
        words = drawing.get_attribute("aria-label") or ""
        assert len(words) > 30
        marks = drawing.query_selector_all(
            "svg [class*=mark-] path, svg [class*=mark-] line, svg .mark-text text"
        )
        assert marks, words
        assert "could not be drawn" not in drawing.inner_text()


def test_a_column_sorts_both_ways_by_its_numbers(window: Window, html: str) -> None:
    opened = window.open(html)
    table = opened.page.query_selector("main section:nth-of-type(2) table")
    assert table is not None

    def column() -> list[str]:
        rows = table.query_selector_all(f"tbody tr td:nth-child({place})")
        return [cell.inner_text().split("\n")[0] for cell in rows]

    headers = [each.inner_text() for each in table.query_selector_all("thead th")]
    place = 1 + headers.index("epoch")
    header = table.query_selector(f"thead th:nth-child({place})")
    assert header is not None
    button = header.query_selector("button")
    assert button is not None
    button.click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert column() == ["255 ms", *["2.04 s"] * 3], "by seconds, and not as text"
    button.press("Enter")
    assert header.get_attribute("aria-sort") == "descending"
    assert column() == [*["2.04 s"] * 3, "255 ms"]


def test_a_phone_need_not_scroll_sideways(window: Window, html: str) -> None:
    opened = window.open(html, viewport={"width": 390, "height": 844})
    assert opened.page.evaluate("document.scrollingElement.scrollWidth") <= 390


OUTSIDE = """() => {
  const found = [];
  for (const drawing of document.querySelectorAll('.drawing[data-drawn=yes]')) {
    const frame = drawing.getBoundingClientRect();
    for (const text of drawing.querySelectorAll('svg text')) {
      const box = text.getBoundingClientRect();
      const sticksOut = box.left < frame.left - 1 || box.right > frame.right + 1;
      if (box.width && sticksOut) found.push(text.textContent);
    }
  }
  const parts = 'h1, h2, h3, p, li, td, th, summary, figcaption, button';
  for (const part of document.querySelectorAll(parts)) {
    if (part.closest('.unseen, .skip')) continue;
    if (part.scrollWidth > part.clientWidth + 1) found.push(part.textContent);
  }
  return found;
}"""
"""Return the words that don't fit into their chart, paragraph or cell."""


@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_no_words_are_cut(window: Window, html: str, width: int) -> None:
    opened = window.open(html, unfolds=True, viewport={"width": width, "height": 900})
    assert opened.page.evaluate(OUTSIDE) == []


PAPER = 718
"""Pixels across a sheet of A4 between margins of 1 cm."""
BEYOND = """(edge) => [...document.querySelectorAll('body *')]
  .filter((part) => !part.closest('.unseen, svg') && part.getBoundingClientRect().right > edge + 1)
  .map((part) => `${part.tagName}: ${part.textContent.slice(0, 80)}`)"""
"""Return the parts that don't fit onto the sheet."""
CUT = """() => [...document.querySelectorAll('.wide, .long > div')]
  .filter((part) => part.scrollWidth > part.clientWidth + 1
    || part.scrollHeight > part.clientHeight + 1)
  .map((part) => part.textContent.slice(0, 80))"""
"""Return the parts that are fully visible only by scrolling."""


def test_nothing_is_cut_on_paper(window: Window, html: str) -> None:
    sheet = window.open(html, unfolds=True, viewport={"width": 1280, "height": 900}).page
    sheet.emulate_media(media="print")
    # charts aren't drawn again for paper
    sheet.add_style_tag(content=f":root {{ width: {PAPER}px; }}")
    assert sheet.evaluate(BEYOND, PAPER) == []
    assert sheet.evaluate(OUTSIDE) == []
    assert sheet.evaluate(CUT) == []
    assert sheet.evaluate("getComputedStyle(document.querySelector('#theme')).display") == "none"


def test_a_sweep_fits_a_phone(window: Window) -> None:
    trials = [
        a_trial(
            number, {"learning_rate": 0.1 / number, "hidden": 32}, test_accuracy=0.9 + number / 100
        )
        for number in range(1, 6)
    ]
    opened = window.open(page(trials, compare([])), viewport={"width": 390, "height": 844})
    assert opened.complaints == []
    assert "The best of 5 trials" in (opened.page.text_content(".answer .verdict") or "")
    assert len(opened.page.query_selector_all("section table tbody tr")) >= 5
    assert opened.page.evaluate("document.scrollingElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_serious_accessibility_problem(
    window: Window, html: str, scheme: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    opened = window.open(html, color_scheme=scheme)
    found = axe.Axe().run(opened.page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert serious == [], [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in serious
    ]


def test_the_scheme_follows_the_reader_and_can_be_changed(window: Window, html: str) -> None:
    opened = window.open(html, color_scheme="dark")

    def background() -> str:
        colour: str = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    dark = background()
    opened.page.click("#theme")
    assert background() == "rgb(255, 255, 255)" != dark


def test_strings_of_a_record_are_only_ever_text(window: Window) -> None:
    opened = window.open(
        made(hostile_records(), title="<b>&</b>", made_with="<script>window.broken = 3</script>")
    )
    assert opened.page.evaluate("window.broken") is None
    assert opened.complaints == []
    assert opened.page.query_selector("img") is None
    assert opened.page.title() == "<b>&</b>"
    assert opened.page.query_selector("section table") is not None
    text = opened.page.inner_text("main")
    assert "window.broken = 1" in text
    assert "{{7*7}}" in text
    assert (
        opened.page.evaluate("document.scrollingElement.scrollWidth")
        <= opened.page.viewport_size["width"]
    )  # type: ignore[index]


INTRUDERS = [
    "<script>window.broken = 1</script>",
    "<script type='module'>window.broken = 1</script>",
    "<img src='data:,' onerror='window.broken = 1'>",
    "<iframe srcdoc='<script>parent.broken = 1</script>'></iframe>",
    "<a id='bait' href='javascript:window.broken = 1'>x</a>",
]


def test_no_script_runs_but_the_pages_own_even_if_one_got_in(window: Window, html: str) -> None:
    """Text of records is escaped; should that ever fail, the page's policy is the second wall."""
    opened = window.open(html.replace("<main", f"{''.join(INTRUDERS)}<main"))
    bait = opened.page.query_selector("#bait")
    assert bait is not None
    bait.dispatch_event("click")
    assert opened.page.evaluate("window.broken") is None
    refused = [said for said in opened.complaints if "Content Security Policy" in said]
    assert len(refused) >= len(INTRUDERS) - 1, "that in the frame may be silent"


def test_a_hostile_chart_is_drawn(window: Window) -> None:
    opened = window.open(made(hostile_records()))
    for drawing in opened.page.query_selector_all(".drawing"):
        assert "could not be drawn" not in drawing.inner_text()
