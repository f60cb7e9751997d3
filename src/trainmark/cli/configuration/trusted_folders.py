"""Folders whose configuration file may set options that could do harm.

The user's configuration folder has one file for each of them, so that two commands never change
the same file. It holds the settings that the user has approved, since the next ``git pull`` may
bring others.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark import regular
from trainmark.errors import OutputError, UsageError

VARIABLE = "TRAINMARK_TRUST_CONFIG"
"""Environment variable that trusts every file, for CI and containers."""
_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("", "0", "false", "no", "off"), False),
}
_MOST_BYTES = 1 << 20
"""Maximum size of a file of this module, in bytes."""


@dataclass(frozen=True)
class TrustedFolder:
    """A folder, and what its configuration file may set.

    Args:
        folder: its real path.
        settings: approved values, by key in the file, such as ``run.python``.
    """

    folder: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def trusts_all() -> bool:
    """Whether the environment trusts every file.

    Raises:
        UsageError: its value is neither yes nor no.
    """
    value = os.environ.get(VARIABLE, "")
    try:
        return _WORDS[value.strip().lower()]
    except KeyError:
        raise UsageError(
            f"{VARIABLE} can't be read", expected="1 or 0", found=repr(value[:100])
        ) from None


def find(folder: Path) -> TrustedFolder | None:
    """Return what the user has approved for ``folder``; None if it is not trusted.

    Raises:
        UsageError: the file that says so can't be read.
    """
    file = _file_of(folder)
    return _read(file) if regular.is_file(file) else None


def find_all() -> list[TrustedFolder]:
    """Return all trusted folders, in alphabetical order.

    Raises:
        UsageError: the file of one of them can't be read.
    """
    return sorted(map(_read, _place().glob("*.json")), key=_folder_of)


def trust(folder: Path, settings: Mapping[str, Any]) -> TrustedFolder:
    """Trust ``folder`` with these settings, which replace earlier ones.

    Raises:
        OutputError: that can't be written.
    """
    trusted = TrustedFolder(os.path.realpath(folder), settings)
    file = _file_of(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        regular.write_atomically(file, f"{json.dumps(vars(trusted), indent=2)}\n".encode())
    except OSError as error:
        raise OutputError(f"can't write {file}", found=error.strerror or str(error)) from error
    return trusted


def withdraw(folder: Path) -> bool:
    """Trust ``folder`` no longer; returns whether it was trusted.

    Raises:
        OutputError: its file can't be removed.
    """
    file = _file_of(folder)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OutputError(f"can't remove {file}", found=error.strerror or str(error)) from error
    return True


def _place() -> Path:
    import platformdirs

    return Path(platformdirs.user_config_dir("trainmark")) / "trusted"


def _file_of(folder: Path) -> Path:
    real = os.fsencode(os.path.realpath(folder))
    return _place() / f"{hashlib.sha256(real).hexdigest()[:32]}.json"


def _folder_of(trusted: TrustedFolder) -> str:
    return trusted.folder


def _read(file: Path) -> TrustedFolder:
    try:
        found = json.loads(regular.read(file, _MOST_BYTES))
        folder = found["folder"]
        settings = found["settings"]
        if not isinstance(folder, str) or not isinstance(settings, dict):
            raise TypeError("a folder without settings")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(
            f"{file} can't be read",
            expected="a trusted folder with its settings",
            found=str(error)[:200],
            fix="Remove that file; then trust the folder again.",
        ) from error
    return TrustedFolder(folder, settings)
