"""The first columns of a comparison: who was measured. By machine, that is its hardware and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.results import GroupResult
from trainmark.record.facts import Key
from trainmark.report.conditions import SIDE, Condition
from trainmark.report.table import Cell, Column, Tone


@dataclass(frozen=True)
class Shown:
    """A column and what it shows of a group; the flag is whether the group is a reference."""

    column: Column
    cell: Callable[[GroupResult, bool], Cell]


HARDWARE = ("machine", "CPU", "device name")
"""Conditions that the columns of :func:`who_by_machine` tell."""


def who(conditions: Sequence[Condition]) -> list[Shown]:
    """Backend, style, device, and whatever else is not the same for all."""
    return [_side_column(name) for name in SIDE] + [_condition_column(each) for each in conditions]


def who_by_machine(groups: Sequence[GroupResult], conditions: Sequence[Condition]) -> list[Shown]:
    """The machine, what computed there, which instance it is and its price; then what else is not the same for all."""
    keys = [group.key for group in groups]
    varied = [name for name in SIDE if len({getattr(key, name) for key in keys}) > 1]
    if len({(key.machine, key.device_name) for key in keys}) == len({(key.machine, key.device) for key in keys}):
        varied = [name for name in varied if name != "device"]  # the hardware says which
    return [
        Shown(Column("machine"), lambda group, _: Cell(group.key.machine, tone="strong")),
        Shown(Column("computed on"), lambda group, _: _hardware(group.key)),
        Shown(Column("cores", "right"), lambda group, _: _cores(group.key)),
        Shown(Column("instance"), lambda group, _: Cell(group.key.instance or units.MISSING)),
        Shown(Column("price\nan hour", "right"), lambda group, _: _price(group)),
        *(_side_column(name) for name in varied),
        *(_condition_column(each) for each in conditions),
    ]


def same_side(groups: Sequence[GroupResult]) -> str:
    """What of backend, style and device is the same for all, which :func:`who_by_machine` has no columns for."""
    told: list[str] = []
    for of in SIDE.values():
        values = {of(group.key) for group in groups}
        if len(values) == 1:
            told += filter(None, values)
    return " ".join(told)


def _hardware(key: Key) -> Cell:
    if key.device_name:
        return Cell(key.device_name, key.cpu or "")
    return Cell(key.cpu or "CPU not known" if key.device in ("cpu", None) else key.device)


def _cores(key: Key) -> Cell:
    quota = "" if key.cpu_quota is None else f"{key.cpu_quota:g} at a time"
    return Cell(units.MISSING if key.cores is None else str(key.cores), quota, value=key.cores)


def _price(group: GroupResult) -> Cell:
    price = group.cost.price_per_hour
    return Cell(units.MISSING if price is None else units.significant(price), value=price)


def _side_column(name: str) -> Shown:
    tone: Tone = "strong" if name == "backend" else "plain"
    return Shown(Column(name), lambda group, _: Cell(group.key.words(name), tone=tone))


def _condition_column(condition: Condition) -> Shown:
    return Shown(Column(condition.title), lambda group, _: Cell(condition.words(group.key) or units.MISSING))
