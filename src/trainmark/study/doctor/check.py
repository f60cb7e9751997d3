"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """One finding.

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


def passed(id_: str, found: str) -> Check:
    """The check passed."""
    return Check(id_, "PASS", found)


def skipped(id_: str, why: str, fix: str = "") -> Check:
    """The check is not possible or has no meaning here."""
    return Check(id_, "SKIP", why, fix)


def warned(id_: str, found: str, fix: str) -> Check:
    """Slow or doubtful."""
    return Check(id_, "WARN", found, fix)


def failed(id_: str, found: str, fix: str) -> Check:
    """Not to be used as it is."""
    return Check(id_, "FAIL", found, fix)
