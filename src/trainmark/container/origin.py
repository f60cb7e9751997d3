"""Where the code that runs comes from: what an image's labels may say of it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import trainmark
from trainmark.errors import NotPacked


@dataclass(frozen=True)
class Origin:
    """The running code.

    Attributes:
        package: its folder.
        version: of the code and of its installation, which are the same.
        revision: the commit, with ``-dirty`` where files were changed since; None outside of a clone.
        source: where the clone came from, without passwords; None where that is not an address.
    """

    package: Path
    version: str
    revision: str | None
    source: str | None

    def labels(self) -> dict[str, str]:
        """Under the names of the OCI image specification; empty where unknown, so that none of the base's stays."""
        known = {"version": self.version, "revision": self.revision, "source": self.source}
        return {f"org.opencontainers.image.{key}": value or "" for key, value in known.items()}


def origin() -> Origin:
    """The code that runs here; raises :class:`~trainmark.errors.NotPacked` where its version can't be trusted."""
    package = Path(trainmark.__file__).parent
    try:
        installed = importlib.metadata.version("trainmark")
    except importlib.metadata.PackageNotFoundError:
        installed = "none"
    if installed != trainmark.__version__:
        raise NotPacked(
            "the code that runs is not the one that is installed, so an image of it could not say its version",
            expected=f"an installation of version {trainmark.__version__}",
            found=f"{installed}",
            fix="Install it again: pip install .",
        )
    # A virtual environment often lies in somebody else's clone, whose commit says nothing of us.
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None
    revision = _git(package, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") if tracked else None
    source = address(_git(package, "remote", "get-url", "origin") or "") if tracked else None
    return Origin(package, trainmark.__version__, revision, source)


def address(remote: str) -> str | None:
    """The address of a clone's remote without what must not be published; None for a folder.

    >>> address("https://me:secret@example.org/trainmark.git")
    'https://example.org/trainmark.git'
    """
    written = re.fullmatch(r"(?P<scheme>https?|ssh|git)://(?:[^@/]*@)?(?P<rest>[\w.:\[\]-]+/[\w./~+-]+)", remote)
    if written:
        return f"{written['scheme']}://{written['rest']}"
    short = re.fullmatch(r"(?:[\w.-]+@)?(?P<host>[\w-]+\.[\w.-]+):(?P<path>[\w./~+-]+)", remote)  # as scp writes it
    return f"ssh://{short['host']}/{short['path']}" if short else None


def _git(folder: Path, *words: str) -> str | None:
    """What git says, None where it says no or is not there."""
    try:
        answer = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
