"""What mkdocs does beside reading docs/: pages that stand in the repository's root, and links that leave docs/.

README.md, CHANGELOG.md and CONTRIBUTING.md are read where they are, so nothing is written twice. A link to source or an
example has no page here: it becomes the path, as one finds it in the repository, and must exist.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "index.md": "README.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/contributing.md": "CONTRIBUTING.md",
}
_LOG = logging.getLogger("mkdocs.hooks")
_VERBS_HELP = "<!-- every verb's help -->"
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<to>(?!\w+:|#)[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the menu what is not there (yet), and fill in whole folders."""

    def there(entry: object) -> object:
        if isinstance(entry, str):
            found = entry in FROM_ROOT or (ROOT / "docs" / entry).is_file()
            return entry if found else None
        ((title, inside),) = entry.items()  # type: ignore[attr-defined]
        if isinstance(inside, str) and inside.endswith("/"):
            pages = [f"{inside}{file.name}" for file in (ROOT / "docs" / inside).glob("*.md")]
            inside = sorted(pages, key=lambda page: (not page.endswith("/README.md"), page))
        elif isinstance(inside, str):
            return entry
        kept = [each for each in map(there, inside) if each is not None]
        return {title: kept} if kept else None

    config.nav = [kept for kept in map(there, config.nav or []) if kept is not None]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in what stands in the root."""
    for place, source in FROM_ROOT.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Point links at pages of the site; what is outside of it becomes a path."""
    place = page.file.src_uri
    if place == "reference/command-line.md":
        return markdown.replace(_VERBS_HELP, "\n\n".join(_helps()))
    here = posixpath.dirname(FROM_ROOT.get(place, f"docs/{place}"))

    def rewritten(link: re.Match[str]) -> str:
        to = posixpath.normpath(posixpath.join(here, link["to"]))
        if not (ROOT / to).exists():
            if files.get_file_from_path(to.removeprefix("docs/")) is not None:
                _LOG.warning("%s links %s, which is there on the site alone", page.file.src_path, link["to"])
            return link[0]  # mkdocs says what else is wrong with it
        if (ROOT / to / "README.md").is_file() and to.startswith("docs/"):
            to += "/README.md"
        inside = {source: site for site, source in FROM_ROOT.items()}.get(to) or to.removeprefix("docs/")
        if files.get_file_from_path(inside) is None:
            return f"{link['text']} (`{to}`)"
        relative = posixpath.relpath(inside, posixpath.dirname(place) or ".")
        return f"[{link['text']}]({relative}{link['anchor'] or ''})"

    return _LINK.sub(rewritten, markdown)


def _helps() -> Iterator[str]:
    """The help of every verb, as a terminal of 80 columns shows it."""
    import click

    from trainmark.cli.main import VERBS, command

    above = click.Context(command, info_name="trainmark", terminal_width=80, max_content_width=80)
    yield f"```text\n{command.get_help(above)}\n```"
    for verb in VERBS:
        inner = command.get_command(above, verb)
        assert inner is not None
        text = inner.get_help(click.Context(inner, above, info_name=verb))
        yield f"## {verb}\n\n```text\n{text}\n```"
