"""The pages of docs/results are short, in the navigation, and small; links in the docs resolve."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import tomllib

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
MAX_LINES = 120
MAX_BYTES = 3_000_000
WRITTEN_BY_A_PROGRAM = {RESULTS / "gpu" / "README.md"}
"""Pages that may have wide lines, since bench/gpu writes a paragraph as one line."""

PAGES = sorted(RESULTS.rglob("*.md"))
WITH_LINKS = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:|#)([^)\s#]+)(?:#[^)\s]*)?\)")


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_of(menu: list[Any]) -> list[str]:
    """Return the paths in a menu of zensical.toml, in order."""
    found: list[str] = []
    for entry in menu:
        if isinstance(entry, str):
            found.append(entry)
            continue
        for below in entry.values():
            found += pages_of(below if isinstance(below, list) else [below])
    return found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_page_is_short(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    assert len(lines) <= MAX_LINES
    wide = [line for line in lines if len(line) > 150 and not line.startswith("|")]
    assert wide == [] or page in WRITTEN_BY_A_PROGRAM


def test_each_page_is_in_the_navigation_once() -> None:
    menu = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    listed = [page for page in pages_of(menu) if page.startswith("results/")]
    assert sorted(listed) == [str(page.relative_to(DOCS)) for page in PAGES]


def test_the_index_names_each_page() -> None:
    index = RESULTS / "README.md"
    named = {(RESULTS / to).resolve() for to in LINK.findall(index.read_text("utf-8"))}
    assert set(PAGES) - {index} <= named


def test_the_results_are_small() -> None:
    size = sum(file.stat().st_size for file in RESULTS.rglob("*") if file.is_file())
    assert size <= MAX_BYTES


@pytest.mark.parametrize("page", WITH_LINKS, ids=relative)
def test_links_to_files_resolve(page: Path) -> None:
    targets = LINK.findall(page.read_text("utf-8"))
    assert [to for to in targets if not (page.parent / to).exists()] == []
