"""Results as flat rows for CSV: nested keys joined by ``_``, numbers as measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainmark.analysis.agreement import PublishedResult, TimingResult, ValueResult
from trainmark.analysis.efficiency import Efficiency
from trainmark.analysis.results import BestThreads, GroupResult, MetricResult, Reached
from trainmark.report.table import Scalar

# A published figure has a ``device`` too: the kind of device it was published for.
_WHO = {
    "backend": "backend",
    "style": "style",
    "on_device": "device",
    "machine": "machine",
    "python": "python",
}

_OPTIONAL: dict[str, Any] = {
    "efficiency": Efficiency,
    "reached": Reached,
    "best_threads": BestThreads,
    "metric": MetricResult,
}
"""Parts of a group that may be unknown, with their classes; even then they have their columns."""


def flat_group(group: GroupResult, position: int) -> dict[str, Scalar]:
    """Return the row of a group; other rows' ``reference`` refers to its ``position``."""
    data = dataclasses.asdict(group)
    flat: dict[str, Scalar] = {"position": position, **data.pop("key")}
    caveats = " ".join(data.pop("caveats"))
    for name, kind in _OPTIONAL.items():
        data[name] = data[name] or dict.fromkeys(field.name for field in dataclasses.fields(kind))
    for name, value in data.items():
        if isinstance(value, dict):
            flat |= {f"{name}_{key}": each for key, each in value.items() if key != "example"}
        else:
            flat[name] = value
    return {**flat, "caveats": caveats}


def flat_published(
    result: PublishedResult, figure: ValueResult | TimingResult
) -> dict[str, Scalar]:
    """Return the row of a published figure and the measured one."""
    side = {
        column: getattr(result.key, name) if result.key else None for column, name in _WHO.items()
    }
    return {
        "workload": result.workload,
        "run": result.run,
        **side,
        **dataclasses.asdict(figure),
    }
