"""``--fail-below R``: which groups are too slow for sure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainmark.analysis.results import Comparison, GroupResult
from trainmark.errors import UsageError
from trainmark.record.caveats import Caveat


@dataclass(frozen=True)
class Bar:
    """Groups that clear the bar, that miss it, and that can't be judged, without an interval or too disturbed."""

    ratio: float
    cleared: tuple[GroupResult, ...]
    missed: tuple[GroupResult, ...]
    unjudged: tuple[GroupResult, ...]


def fail_below(comparison: Comparison, ratio: float) -> Bar:
    """Hold every group but the references against the bar.

    A group misses it when the upper bound of its interval is below ``ratio``, so that noise alone never fails a build;
    and when it does not learn or none of its runs finished, since no speed makes up for that. One that others disturbed
    too much can't be judged.

    Raises:
        UsageError: ``ratio`` is not above 0.
    """
    if not 0 < ratio < math.inf:
        raise UsageError("the bar of --fail-below is out of bounds", expected="a number above 0", found=f"{ratio:g}")
    cleared: list[GroupResult] = []
    missed: list[GroupResult] = []
    unjudged: list[GroupResult] = []
    for position, group in enumerate(comparison.groups):
        if comparison.is_reference(position):
            continue
        high = group.speedup.high
        if Caveat.NOT_LEARNING in group.caveats or not group.runs:
            missed.append(group)
            continue
        if Caveat.TOO_DISTURBED in group.caveats:
            high = None
        (unjudged if high is None else missed if high < ratio else cleared).append(group)
    return Bar(ratio, tuple(cleared), tuple(missed), tuple(unjudged))
