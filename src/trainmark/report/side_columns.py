"""The first columns of a comparison: backend, style, device, or machines, hardware and price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.results import GroupResult
from trainmark.record.facts import Key
from trainmark.report.conditions import SIDE, Condition
from trainmark.report.table import Cell, Field, Tone, number_of, text_of, toned


@dataclass(frozen=True)
class GroupRow:
    """A group at its position in a comparison."""

    group: GroupResult
    position: int
    is_reference: bool


HARDWARE = ("machine", "CPU", "device name")
"""Conditions that have columns in :func:`side_columns_by_machine`."""


def side_columns(
    groups: Sequence[GroupResult], conditions: Sequence[Condition]
) -> list[Field[GroupRow]]:
    """Return columns for whatever differs of backend, style, device and other conditions.

    If nothing differs, this is the backend.
    """
    varied = _varied([group.key for group in groups])
    if not varied and not conditions:
        varied = ["backend"]
    return [*map(_side_column, varied), *map(_condition_column, conditions)]


def side_columns_by_machine(
    groups: Sequence[GroupResult], conditions: Sequence[Condition]
) -> list[Field[GroupRow]]:
    """Return columns for the machine, its hardware and price, and for conditions that differ."""
    keys = [group.key for group in groups]
    varied = _varied(keys)
    hardware = {(key.machine, key.device_name) for key in keys}
    devices = {(key.machine, key.device) for key in keys}
    if len(hardware) == len(devices):
        # The column of the hardware tells the devices apart.
        varied = [name for name in varied if name != "device"]
    return [
        Field("machine", toned("group.key.machine", "strong")),
        Field("computed on", lambda row: _hardware(row.group.key)),
        Field("cores", lambda row: _cores(row.group.key), "right"),
        Field("instance", text_of("group.key.instance", _or_missing)),
        Field("price\nper hour", number_of("group.cost.price_per_hour", units.money), "right"),
        *map(_side_column, varied),
        *map(_condition_column, conditions),
    ]


def same_side(groups: Sequence[GroupResult]) -> str:
    """Return the backend, style and device that all groups share, which have no columns."""
    values = ({of(group.key) for group in groups} for of in SIDE.values())
    return " ".join(filter(None, (each.pop() for each in values if len(each) == 1)))


def _varied(keys: Sequence[Key]) -> list[str]:
    return [name for name in SIDE if len({getattr(key, name) for key in keys}) > 1]


def _or_missing(words: str | None) -> str:
    return words or units.MISSING


def _hardware(key: Key) -> Cell:
    if key.device_name:
        return Cell(key.device_name, key.cpu or "")
    if key.device in ("cpu", None):
        return Cell(key.cpu or "CPU not known")
    return Cell(key.device)


def _cores(key: Key) -> Cell:
    quota = "" if key.cpu_quota is None else f"quota {key.cpu_quota:g}"
    return Cell(units.MISSING if key.cores is None else str(key.cores), quota, value=key.cores)


def _side_column(name: str) -> Field[GroupRow]:
    tone: Tone = "strong" if name == "backend" else "plain"
    return Field(name, lambda row: Cell(row.group.key.words(name), tone=tone))


def _condition_column(condition: Condition) -> Field[GroupRow]:
    def words(row: GroupRow) -> str:
        return condition.words(row.group.conditions) or units.MISSING

    return Field(condition.title, words)
