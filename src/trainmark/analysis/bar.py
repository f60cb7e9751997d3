"""``--fail-below R``: which groups are too slow for sure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.analysis.results import Comparison, GroupResult


@dataclass(frozen=True)
class Bar:
    """Groups that clear the bar, that miss it, and that can't be judged because they have no interval."""

    ratio: float
    cleared: tuple[GroupResult, ...]
    missed: tuple[GroupResult, ...]
    unjudged: tuple[GroupResult, ...]


def fail_below(comparison: Comparison, ratio: float) -> Bar:
    """Hold every group but the references against the bar.

    A group misses it only when the upper bound of its interval is below ``ratio``: noise alone never fails a build.
    """
    cleared: list[GroupResult] = []
    missed: list[GroupResult] = []
    unjudged: list[GroupResult] = []
    for position, group in enumerate(comparison.groups):
        if comparison.is_reference(position):
            continue
        high = group.speedup.high
        (unjudged if high is None else missed if high < ratio else cleared).append(group)
    return Bar(ratio, tuple(cleared), tuple(missed), tuple(unjudged))
