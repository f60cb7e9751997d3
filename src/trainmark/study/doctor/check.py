"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """One finding, and what it is about.

    Args:
        id: stable, so that scripts can name it; a dot separates what it is about.
        status: FAIL makes a device unusable or its numbers wrong, WARN makes them slow or doubtful, SKIP: not checked.
        found: what was found, as text.
        fix: what to do, preferably the exact command; empty if nothing needs to be done.
    """

    id: str
    status: Status
    found: str
    fix: str = ""


class Finding(NamedTuple):
    """All of a :class:`Check` but its id."""

    status: Status
    found: str
    fix: str = ""


def passed(found: str) -> Finding:
    """The check passed."""
    return Finding("PASS", found)


def skipped(why: str, fix: str = "") -> Finding:
    """The check is not possible or has no meaning here."""
    return Finding("SKIP", why, fix)


def warned(found: str, fix: str) -> Finding:
    """Slow or doubtful."""
    return Finding("WARN", found, fix)


def failed(found: str, fix: str) -> Finding:
    """Not to be used as it is."""
    return Finding("FAIL", found, fix)
