"""The version of trainmark, and in a clone the commit that ran."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

VERSION = "0.2.0.dev0"
"""The version in ``pyproject.toml``. The measured process has no installation to ask for it."""
UNKNOWN_COMMIT = "unknown"
"""The commit of a clone in which git does not answer."""


@functools.cache
def version() -> str:
    """Return the version, such as ``0.2.0``, or in a clone ``0.2.0.dev0+g1b930a711``.

    ``.dirty`` at the end means that tracked files were changed after that commit.
    """
    root = Path(__file__).parents[2]
    return version_of(root) if (root / ".git").exists() else VERSION


def version_of(clone: Path) -> str:
    """Return the version of the source in ``clone``, with its commit."""
    described = git(clone, "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*")
    commit = f"g{described.replace('-', '.')}" if described else UNKNOWN_COMMIT
    return f"{VERSION}+{commit}"


def git(clone: Path, *words: str) -> str:
    """Return the output of git in ``clone``; empty if it fails or is not installed."""
    # In a git hook, GIT_DIR and similar variables select the hook's repository, which may be
    # another one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(clone), *words]
    try:
        done = subprocess.run(
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
    return done.stdout.strip() if done.returncode == 0 else ""
