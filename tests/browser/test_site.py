"""The site of the documents: complete, and nothing of it comes from elsewhere."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]


pytest.importorskip("zensical", reason="the docs extra is not installed")


def build(root: Path) -> tuple[int, str]:
    """Return the exit status and the output."""
    words = [sys.executable, ".ci/site.py"]
    done = subprocess.run(
        words, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def site() -> Path:
    status, said = build(ROOT)
    assert status == 0, said
    return ROOT / "build" / "site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files silently."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_pages_of_the_root_are_there(site: Path) -> None:
    assert "Is the GPU worth it" in (site / "index.html").read_text()
    assert "not released yet" in (site / "project" / "changelog.html").read_text()
    assert "--fail-below" in (site / "reference" / "command-line.html").read_text()
    assert 'id="trainmark.api.Records.to_frame"' in (site / "reference" / "python.html").read_text()


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("docs/nowhere.md", "README.md: docs/nowhere.md"),
        ("src/nowhere.py", "README.md: src/nowhere.py"),
        ("docs/page.md#nowhere", "anchor does not exist"),
    ],
)
def test_a_dead_link_fails_the_build(tmp_path: Path, link: str, complaint: str) -> None:
    small_site(
        tmp_path, f"# Small\n\n[A link]({link}), and [one that is alive](docs/page.md#there).\n"
    )
    status, said = build(tmp_path)
    assert status != 0
    assert complaint in said


def test_so_does_a_menu_that_names_no_page(tmp_path: Path) -> None:
    small_site(tmp_path, "# Small\n")
    config = tmp_path / "zensical.toml"
    config.write_text(config.read_text().replace("index.md", "nowhere.md", 1))
    status, said = build(tmp_path)
    assert status != 0
    assert "zensical.toml: nowhere.md" in said


def small_site(root: Path, readme: str) -> None:
    """Our script and settings over two pages."""
    (root / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "site.py", root / ".ci")
    settings = (ROOT / "zensical.toml").read_text()
    (root / "zensical.toml").write_text(re.sub(r'"[^"]+\.md"', '"index.md"', settings))
    (root / "docs").mkdir()
    (root / "docs" / "page.md").write_text("# Page\n\n## There\n")
    (root / "README.md").write_text(readme)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (root / name).write_text("# Empty\n")


@pytest.mark.parametrize(
    "page", ["index.html", "reference/command-line.html", "reference/python.html"]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_whole_without_a_network_on_a_phone(
    address: str, browser: Browser, page: str, scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})  # type: ignore[arg-type]
    window = context.new_page()
    window.set_default_timeout(PATIENCE)
    asked: list[str] = []
    window.on("request", lambda request: asked.append(request.url))
    said: list[str] = []
    window.on("pageerror", lambda error: said.append(str(error)))
    window.goto(address + page, wait_until="networkidle")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert said == []
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
