"""Choose the two groups of a workload that answer the user's question."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark.analysis.comparison import compare_groups
from trainmark.analysis.results import Comparison, GroupResult
from trainmark.analysis.statistics import SLICES_CONFIDENCE


def answering_pair(
    comparison: Comparison, positions: Sequence[int], confidence: float = SLICES_CONFIDENCE
) -> tuple[GroupResult, GroupResult] | None:
    """Return the compared group with the shortest epochs, and its reference.

    Pairs that learn, and of which trainings were completed, are preferred.

    A device is compared with the CPU, or with the device measured first. Without several devices,
    with a baseline or with ``by``, the reference is that of ``comparison``.

    Args:
        positions: positions of one workload's groups.
        confidence: confidence level of the intervals of slices.
    """
    comparisons = [comparison]
    if comparison.baseline is None and comparison.by is None:
        groups = [comparison.measured[position] for position in positions]
        has_cpu = any(group.records and group.key.device == "cpu" for group in groups)
        cpu = ("device", "cpu") if has_cpu else None
        by_device = compare_groups(groups, "device", cpu, comparison.margin, confidence=confidence)
        comparisons.insert(0, by_device)
    own = {comparison.groups[position].key for position in positions}
    for each in comparisons:
        held = []
        for position, group in enumerate(each.groups):
            if group.reference is None or group.reference == position:
                continue
            if group.speedup.ratio is not None and group.key in own:
                held.append((group, each.groups[group.reference]))
        if held:
            return min(held, key=_rank)
    return None


def _rank(pair: tuple[GroupResult, GroupResult]) -> tuple[bool, float, float]:
    """Return how far a pair is from the best answer; the lowest is best."""
    is_sound = all(group.learns and not group.breaks for group in pair)
    return not is_sound, *_slowness(pair[0])


def _slowness(group: GroupResult) -> tuple[float, float]:
    seconds = (
        group.epoch_seconds if group.speedup.of != "process" else group.process_seconds
    ).median
    return math.inf if seconds is None else seconds, -(group.speedup.ratio or 0.0)
