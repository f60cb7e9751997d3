"""The first columns of a comparison: backend, style and device, or the machines with their hardware
and price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.results import GroupResult
from trainmark.record.facts import Key
from trainmark.report.conditions import SIDE, Condition
from trainmark.report.table import Cell, Field, Tone, number


@dataclass(frozen=True)
class GroupRow:
    """A group at its position in a comparison."""

    group: GroupResult
    position: int
    is_reference: bool


HARDWARE = ("machine", "CPU", "device name")
"""Conditions that have columns in :func:`who_by_machine`."""


def who(groups: Sequence[GroupResult], conditions: Sequence[Condition]) -> list[Field[GroupRow]]:
    """Return columns for backend, style, device and other conditions that differ; for one group,
    its backend.
    """
    varied = _varied([group.key for group in groups]) or ([] if conditions else ["backend"])
    return [_side_column(name) for name in varied] + [
        _condition_column(each) for each in conditions
    ]


def who_by_machine(
    groups: Sequence[GroupResult], conditions: Sequence[Condition]
) -> list[Field[GroupRow]]:
    """Return columns for the machine, its hardware, instance and price, and for other conditions
    that differ.
    """
    keys = [group.key for group in groups]
    varied = _varied(keys)
    if len({(key.machine, key.device_name) for key in keys}) == len(
        {(key.machine, key.device) for key in keys}
    ):
        varied = [name for name in varied if name != "device"]  # the hardware column shows it
    return [
        Field("machine", lambda row: Cell(row.group.key.machine, tone="strong")),
        Field("computed on", lambda row: _hardware(row.group.key)),
        Field("cores", lambda row: _cores(row.group.key), "right"),
        Field("instance", lambda row: row.group.key.instance or units.MISSING),
        Field(
            "price\nper hour",
            lambda row: number(row.group.cost.price_per_hour, units.money),
            "right",
        ),
        *(_side_column(name) for name in varied),
        *(_condition_column(each) for each in conditions),
    ]


def same_side(groups: Sequence[GroupResult]) -> str:
    """Return the backend, style and device that all groups share, which have no columns."""
    values = ({of(group.key) for group in groups} for of in SIDE.values())
    return " ".join(filter(None, (each.pop() for each in values if len(each) == 1)))


def _varied(keys: Sequence[Key]) -> list[str]:
    return [name for name in SIDE if len({getattr(key, name) for key in keys}) > 1]


def _hardware(key: Key) -> Cell:
    if key.device_name:
        return Cell(key.device_name, key.cpu or "")
    return Cell(key.cpu or "CPU not known" if key.device in ("cpu", None) else key.device)


def _cores(key: Key) -> Cell:
    quota = "" if key.cpu_quota is None else f"quota {key.cpu_quota:g}"
    return Cell(units.MISSING if key.cores is None else str(key.cores), quota, value=key.cores)


def _side_column(name: str) -> Field[GroupRow]:
    tone: Tone = "strong" if name == "backend" else "plain"
    return Field(name, lambda row: Cell(row.group.key.words(name), tone=tone))


def _condition_column(condition: Condition) -> Field[GroupRow]:
    return Field(
        condition.title, lambda row: condition.words(row.group.conditions) or units.MISSING
    )
