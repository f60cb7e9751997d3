"""Find the configuration file that applies in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmark import regular
from trainmark.cli.configuration import trusted_folders
from trainmark.cli.configuration.ownership import objection
from trainmark.cli.configuration.settings import Configuration, IgnoredFile
from trainmark.errors import UsageError
from trainmark.workload import toml_text

NAME = "trainmark.toml"
"""Name of the file that has options alone."""
SHARED = "pyproject.toml"
"""Name of the file that has them in a table, next to other tools' settings."""
MOST_BYTES = 1 << 20
"""Maximum size of a file, in bytes, so that a wrong one doesn't fill the memory."""
_PLACES = ((NAME, ()), (SHARED, ("tool", "trainmark")))
"""Names of files, and the keys of the table in each."""
_TABLE = re.compile(rb"^\s*\[+\s*tool\s*\.\s*[\"']?trainmark", re.MULTILINE)
"""Start of the table in a file of another user, which is not parsed."""


def find(folder: Path, *, of_anyone: bool = False) -> Configuration:
    """Return the nearest configuration of ``folder`` and those above it.

    Args:
        of_anyone: whether a file also counts if another user owns it or can write it.

    Raises:
        UsageError: a file can't be read.
    """
    trusts_all = trusted_folders.trusts_all()
    ignored: list[IgnoredFile] = []
    for place in _searched(folder):
        for name, path in _PLACES:
            file = place / name
            if not regular.is_file(file):
                continue
            trusted = trusted_folders.find(place)
            counts_anyway = trusts_all or of_anyone or trusted is not None
            found = _read(file, path, counts_anyway=counts_anyway)
            if isinstance(found, IgnoredFile):
                ignored.append(found)
            elif found is not None:
                text, table = found
                approved = None if trusts_all else trusted.settings if trusted else {}
                return Configuration(file, text, path, table, approved, tuple(ignored))
    return Configuration(ignored=tuple(ignored))


def _searched(folder: Path) -> Iterator[Path]:
    """Yield ``folder`` and those above it, up to the root of its repository or the home folder."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111  (it never raises)
    for place in (folder, *folder.parents):
        yield place
        if os.path.lexists(place / ".git") or os.path.realpath(place) == home:
            return


def _read(
    file: Path, path: tuple[str, ...], *, counts_anyway: bool
) -> tuple[str, dict[str, Any]] | IgnoredFile | None:
    """Return the text and the table of a file, or why it is ignored; None if it has no table."""
    try:
        content, status = regular.read_with_status(file, MOST_BYTES)
        reason = None if counts_anyway else objection(file, status)
    except OSError as error:
        reason = None if counts_anyway else _objection_to_unreadable(file)
        if reason is None:
            raise _unreadable(file, error) from error
        return IgnoredFile(file, reason) if not path else None
    if reason is not None:
        return IgnoredFile(file, reason) if not path or _TABLE.search(content) else None
    try:
        text = content.decode()
        if path and path[-1] not in text:
            return None
        table: Any = toml_text.parse(text)
    except ValueError as error:
        raise _unreadable(file, error) from error
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    if table is not None and not isinstance(table, dict):
        raise Configuration(file, text, path).error(path, "a table", table)
    return None if table is None else (text, table)


def _objection_to_unreadable(file: Path) -> str | None:
    try:
        return objection(file, file.stat())
    except OSError:
        return None


def _unreadable(file: Path, error: Exception) -> UsageError:
    return UsageError(f"{file} can't be read", expected="TOML 1.0", found=str(error))
