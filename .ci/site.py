"""Build the site in build/site, or with --serve show it and follow changes.

Zensical reads one folder and runs no hooks, so the pages are first assembled in build/docs: docs/,
the pages in the repository's root, and the help of every verb. A link to source or an example has
no page here: it becomes the path, as one finds it in the repository, and must exist.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click

from trainmark.cli.main import VERBS, command

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
}
_VERBS_HELP = "<!-- every verb's help -->"
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<to>(?!\w+:|#)[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_UNSEARCHED = "docs/decisions/"  # for readers who follow a link there
_ZENSICAL = [sys.executable, "-m", "zensical"]


def assemble() -> list[str]:
    """Write the pages to build/docs and return the dead links."""
    files = (str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*") if file.is_file())
    places = FROM_ROOT | {file: file.removeprefix("docs/") for file in files}
    menu = re.findall(r'"([^"]+\.md)"', (ROOT / "zensical.toml").read_text())
    # Zensical does not check these
    dead = [f"zensical.toml: {page}" for page in menu if page not in places.values()]
    for source, place in places.items():
        content = (ROOT / source).read_bytes()
        if source.endswith(".md"):
            content = _page(content.decode(), source, places, dead).encode()
        target = ROOT / "build" / "docs" / place
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return dead


def _page(text: str, source: str, places: dict[str, str], dead: list[str]) -> str:
    """Return the page with its links as they are on the site; dead ones are added to `dead`."""

    def rewritten(link: re.Match[str]) -> str:
        to = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["to"]))
        place = places.get(to) or places.get(f"{to}/README.md")
        if place is not None:
            relative = posixpath.relpath(place, posixpath.dirname(places[source]) or ".")
            return f"[{link['text']}]({relative}{link['anchor'] or ''})"
        if not (ROOT / to).exists():
            dead.append(f"{source}: {link['to']}")
        return f"{link['text']} (`{to}`)"

    text = _LINK.sub(rewritten, text)
    if source.startswith(_UNSEARCHED):
        return f"---\nsearch: {{exclude: true}}\n---\n\n{text}"
    return text.replace(_VERBS_HELP, _helps()) if _VERBS_HELP in text else text


def _helps() -> str:
    """Return the help of every verb, as a terminal of 80 columns shows it."""
    above = click.Context(command, info_name="trainmark", terminal_width=80, max_content_width=80)
    helps = [f"```text\n{command.get_help(above)}\n```"]
    for verb in VERBS:
        inner = command.get_command(above, verb)
        assert inner is not None
        helps.append(
            "## "
            f"{verb}\n\n```text\n{inner.get_help(click.Context(inner, above, info_name=verb))}\n```"
        )
    return "\n\n".join(helps)


def main(*, serve: bool) -> int | str:
    """Build, or serve until Ctrl-C; return the exit status, or the dead links."""
    shutil.rmtree(ROOT / "build" / "docs", ignore_errors=True)
    dead = assemble()
    if serve:
        with (
            contextlib.suppress(KeyboardInterrupt),
            subprocess.Popen([*_ZENSICAL, "serve"], cwd=ROOT) as server,
        ):
            while server.poll() is None:
                time.sleep(1)
                assemble()
        return 0
    if dead:
        return "\n".join(["dead links:", *dead])
    return subprocess.call([*_ZENSICAL, "build", "--clean", "--strict"], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(serve="--serve" in sys.argv[1:]))
