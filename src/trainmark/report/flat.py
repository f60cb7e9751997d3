"""Results as flat rows for CSV: nested keys joined by ``_``, numbers as measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainmark.analysis.agreement import PublishedResult, TimingResult, ValueResult
from trainmark.analysis.cost import Cost
from trainmark.analysis.efficiency import Efficiency
from trainmark.analysis.results import GroupResult, Learning, MedianInterval, Reached, Speedup
from trainmark.report.table import Scalar

# A published figure has a ``device`` too: the kind of device it was published for.
_WHO = {"backend": "backend", "style": "style", "on_device": "device", "machine": "machine", "python": "python"}

_NESTED: dict[str, Any] = {
    "epoch_seconds": MedianInterval,
    "process_seconds": MedianInterval,
    "speedup": Speedup,
    "learning": Learning,
    "efficiency": Efficiency,
    "cost": Cost,
    "reached": Reached,
}
"""Nested parts of a group with their classes, so that an unknown part still has its columns."""


def flat_group(group: GroupResult, position: int) -> dict[str, Scalar]:
    """Return the row of a group; other rows' ``reference`` refers to its ``position``."""
    data = dataclasses.asdict(group)
    flat: dict[str, Scalar] = {"position": position, **data.pop("key")}
    for name, value in data.items():
        if name in _NESTED:
            inner = value or {field.name: None for field in dataclasses.fields(_NESTED[name])}
            flat.update({f"{name}_{key}": scalar for key, scalar in inner.items()})
        elif name != "caveats":
            flat[name] = value
    flat["caveats"] = " ".join(caveat.value for caveat in group.caveats)
    return flat


def flat_published(result: PublishedResult, figure: ValueResult | TimingResult) -> dict[str, Scalar]:
    """Return the row of a published figure and the measured one."""
    who = {column: getattr(result.key, name) if result.key else None for column, name in _WHO.items()}
    return {"workload": result.workload, "run": result.run, **who, **dataclasses.asdict(figure)}
