"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Args:
        id: a stable name for scripts, such as ``gpu.driver``.
        status: FAIL: a device is unusable or gives wrong results. WARN: slow, or doubtful numbers. SKIP: not checked.
        found: what was found, as text.
        fix: what to do, preferably the exact command; empty if nothing needs to be done.
    """

    id: str
    status: Status
    found: str
    fix: str = ""


class Finding(NamedTuple):
    """A :class:`Check` without its id."""

    status: Status
    found: str
    fix: str = ""


def passed(found: str) -> Finding:
    """Return a passed check."""
    return Finding("PASS", found)


def skipped(why: str, fix: str = "") -> Finding:
    """Return a skipped check: impossible or meaningless here."""
    return Finding("SKIP", why, fix)


def warned(found: str, fix: str) -> Finding:
    """Return a warning: slow, or doubtful numbers."""
    return Finding("WARN", found, fix)


def failed(found: str, fix: str) -> Finding:
    """Return a failure: unusable, or wrong results."""
    return Finding("FAIL", found, fix)
