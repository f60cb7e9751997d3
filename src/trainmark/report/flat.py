"""Results as flat rows for CSV: nested keys joined by ``_``, numbers as measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainmark.analysis.agreement import PublishedResult, TimingResult, ValueResult
from trainmark.analysis.results import GroupResult
from trainmark.report.table import Scalar

# A published figure has a field ``device`` of its own: the kind it was printed for.
_WHO = {"backend": "backend", "style": "style", "on_device": "device", "machine": "machine", "python": "python"}


def flat_group(group: GroupResult, position: int) -> dict[str, Scalar]:
    """One group; ``position`` is what other rows' ``reference`` points to."""
    data = dataclasses.asdict(group)
    flat: dict[str, Scalar] = {"position": position, **data.pop("key")}
    for name, value in data.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{inner}": scalar for inner, scalar in value.items()})
        elif name != "caveats":
            flat[name] = value
    flat["caveats"] = " ".join(caveat.value for caveat in group.caveats)
    return flat


def flat_value(result: PublishedResult, value: ValueResult) -> dict[str, Scalar]:
    """One published figure beside the measured one."""
    return {**_published(result), **_fields(value)}


def flat_timing(result: PublishedResult, timing: TimingResult) -> dict[str, Scalar]:
    """One published duration or rate beside the measured one."""
    return {**_published(result), **_fields(timing)}


def _published(result: PublishedResult) -> dict[str, Scalar]:
    flat: dict[str, Scalar] = {"workload": result.workload, "run": result.run}
    for column, name in _WHO.items():
        flat[column] = getattr(result.key, name) if result.key else None
    return flat


def _fields(value: Any) -> dict[str, Scalar]:
    return dataclasses.asdict(value)
