"""The version of trainmark.

A build takes its version from git (setuptools-scm) and writes it to ``_version.py``. In a clone,
git is asked at run time, since the version from an editable install is wrong after the next commit.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import subprocess
import time
from pathlib import Path

UNKNOWN = "0+unknown"
_UNTAGGED = "0.1.0.dev"
_DESCRIBED = re.compile(r"(?:v(?P<tag>.+)-(?P<ahead>\d+)-g)?(?P<node>[0-9a-f]+)(?P<dirty>-dirty)?")


@functools.cache
def version() -> str:
    """Return the version of this source, such as ``0.1.0``.

    Two commits later it is ``0.1.0.post1.dev2+g1b930a711``.
    """
    root = Path(__file__).parents[2]
    return version_of(root) if (root / ".git").exists() else _built()


def version_of(clone: Path) -> str:
    """Return setuptools-scm's version of the source in ``clone``.

    Its schemes are ``no-guess-dev`` and ``node-and-date``.
    """
    described = git(
        clone,
        "describe",
        "--tags",
        "--long",
        "--dirty",
        "--always",
        "--abbrev=9",
        "--match",
        "v[0-9]*",
    )
    found = _DESCRIBED.fullmatch(described)
    if found is None:
        # There is no git, or it refuses this folder; an outdated answer would be worse than none.
        return UNKNOWN
    tag, ahead, node, dirty = found.groups()
    if tag and ahead == "0" and not dirty:
        return tag
    public = (
        f"{tag}.post1.dev{ahead}" if tag else _UNTAGGED + git(clone, "rev-list", "--count", "HEAD")
    )
    return f"{public}+g{node}" + (f".d{time.strftime('%Y%m%d', time.gmtime())}" if dirty else "")


def _built() -> str:
    """Return the version that the build wrote."""
    try:
        built: str = importlib.import_module("trainmark._version").VERSION
    except ModuleNotFoundError:
        return UNKNOWN  # a copy of the source that was never built
    return built


def git(clone: Path, *words: str) -> str:
    """Return the output of git in ``clone``, empty if it fails or is not installed."""
    # In a git hook, GIT_DIR and similar variables select the hook's repository, which may be
    # another one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(clone), *words]
    try:
        said = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
