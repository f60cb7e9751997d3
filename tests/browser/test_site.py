"""The site of the documents: complete, and nothing of it comes from elsewhere."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_what_stands_in_the_root_is_there(site: Path) -> None:
    assert "Is the GPU worth it" in (site / "index.html").read_text()
    assert "Unreleased" in (site / "project" / "changelog.html").read_text()
    assert "--fail-below" in (site / "reference" / "command-line.html").read_text()


@pytest.mark.parametrize("page", ["index.html", "reference/command-line.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_whole_without_a_network_on_a_phone(address: str, browser: Browser, page: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})  # type: ignore[arg-type]
    window = context.new_page()
    asked: list[str] = []
    window.on("request", lambda request: asked.append(request.url))
    said: list[str] = []
    window.on("pageerror", lambda error: said.append(str(error)))
    window.goto(address + page, wait_until="networkidle")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert said == []
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
