"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Args:
        id: a stable name for scripts, such as ``gpu.driver``.
        status: FAIL: a device is unusable or gives wrong results. WARN: slow, or doubtful numbers.
            SKIP: not checked.
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


passed = partial(Finding, "PASS")
skipped = partial(Finding, "SKIP")  # the check is impossible or meaningless here
warned = partial(Finding, "WARN")  # slow, or doubtful numbers; the fix says what to do
failed = partial(Finding, "FAIL")  # unusable, or wrong results; the fix says what to do
