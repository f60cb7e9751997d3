"""A real browser, headless, with pages opened from files as a double-click would."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 120_000
"""Time limit in milliseconds; a busy machine may need this long."""


@dataclass
class Opened:
    """A page, with its complaints and requests."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class Window:
    """Opens pages, each in its own window."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder

    def open(self, html: str, *, unfolds: bool = False, **context: Any) -> Opened:
        """Show ``html`` and wait until everything is drawn; if it ``unfolds``, folded parts as
        well."""
        file = self._folder / "page.html"
        file.write_text(html)
        page = self._browser.new_context(**context).new_page()
        page.set_default_timeout(PATIENCE)
        opened = Opened(page)
        page.on(
            "console",
            lambda said: (
                opened.complaints.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-drawn=yes]", timeout=PATIENCE)
        if unfolds:
            page.evaluate(
                "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
            )
            drawn = (
                "[...document.querySelectorAll('.drawing')].every((each) => "
                "each.dataset.drawn === 'yes')"
            )
            page.wait_for_function(drawn, timeout=PATIENCE)
        return opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium ends with the file, so that its event loop and its processes disturb no
    other test."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed (apt install chromium)")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root in a container can't have a sandbox; the pages are our own.
        made = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield made
        made.close()


@pytest.fixture
def window(browser: Browser, tmp_path: Path) -> Window:
    """Where pages are opened."""
    return Window(browser, tmp_path)
