"""Where the copy of a user's folder lies, for a command that must not change the original."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from .wire import SCRATCH_PREFIX

_MOST_LEVELS = 4
"""Number of folders above the copied one that are imitated."""
_PATH = re.compile(rf"[^\s'\"]*/{SCRATCH_PREFIX}[^\s/]+/copy-(?P<levels>\d)/(?P<inside>[^\s'\"]*)")
"""Matches the path of a file of a copy in what a command prints."""


class Place(NamedTuple):
    """Where the copy of a folder goes.

    Args:
        root: stands for a folder above the user's.
        copy: the copy, as far below ``root`` as the user's folder is below that one.
    """

    root: Path
    copy: Path


def place_of_copy(folder: Path, scratch: Path) -> Place:
    """Return where the copy of a folder goes.

    It is as deep as the user's, at least by a few folders, so that ``../../data`` leads to a place
    where the user's can be linked.

    Args:
        folder: the user's folder.
        scratch: a folder of trainmark's.
    """
    above = [each.name for each in folder.parents if each.name][:_MOST_LEVELS]
    parts = *reversed(above[:-1]), folder.name
    root = scratch / f"copy-{len(parts)}"
    return Place(root, root.joinpath(*parts))


def without_copy(text: str) -> str:
    """Return what a command has printed, with paths in its working folder instead of the copy's."""
    return _PATH.sub(_inside, text)


def _inside(found: re.Match[str]) -> str:
    levels = int(found["levels"])
    parts = found["inside"].split("/")
    return "/".join(parts[levels:]) if len(parts) > levels else found[0]
