"""Where the code that runs comes from: what an image's labels may say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import trainmark
from trainmark.version import git


@dataclass(frozen=True)
class Origin:
    """The running code.

    Attributes:
        package: its folder.
        version: of the code as it is now, which may be newer than its installation.
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
    """The code that runs here."""
    package = Path(trainmark.__file__).parent
    # A virtual environment often lies in somebody else's clone, whose commit says nothing of us.
    tracked = bool(git(package, "ls-files", "--error-unmatch", "__init__.py"))
    revision = git(package, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") if tracked else None
    source = address(git(package, "remote", "get-url", "origin")) if tracked else None
    return Origin(package, trainmark.__version__, revision or None, source)


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
