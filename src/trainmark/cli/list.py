"""``trainmark list``: workloads, backends, devices and datasets."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.options import python_option
from trainmark.cli.output import json_option, print_json, terminal_observer
from trainmark.report.console import console, draw_all
from trainmark.report.table import Field, Table, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainmark.execute.parent.probe import Interpreter, Seen
    from trainmark.execute.parent.request import PreparationObserver

SUBJECTS = ("workloads", "datasets", "backends", "devices")
"""Subjects in the order of their answers; devices take some seconds."""

EPILOG = """\b
Examples:
  trainmark list
  trainmark list devices
  trainmark list backends --json
  trainmark list backends --python old=/opt/old/bin/python
"""


_TESTED = "tested_on_hardware"


@click.command("list", epilog=EPILOG)
@click.argument("subject", type=click.Choice(SUBJECTS), required=False)
@python_option
@json_option
def command(subject: str | None, pythons: tuple[str, ...], as_json: bool) -> None:
    """List workloads, backends, devices or datasets; without a subject, all of them.

    Each installed backend reports its devices from a separate process. With --python, the backends
    of that interpreter are listed as NAME@LABEL.
    """
    from trainmark.study.options import read_interpreter

    found = _answers([subject] if subject else SUBJECTS, tuple(map(read_interpreter, pythons)))
    if as_json:
        rows = dict(found)
        print_json(rows[subject] if subject else rows)
        return
    draw_all(console(), (_table(name, table) for name, table in found))


def _answers(
    subjects: Sequence[str], interpreters: Sequence[Interpreter]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each subject with its rows as soon as they are known."""
    there: dict[Interpreter, list[tuple[Seen, str]]] = {}
    for subject in subjects:
        if subject in ("workloads", "datasets"):
            yield subject, workloads() if subject == "workloads" else datasets()
            continue
        with terminal_observer().preparing() as preparation:
            rows = backends() if subject == "backends" else devices(preparation)
            for interpreter in interpreters:
                if interpreter not in there:
                    there[interpreter] = _there(interpreter, preparation)
                for seen, install in there[interpreter]:
                    name = f"{seen.backend}@{interpreter.label}"
                    version = seen.can.version if seen.can else None
                    row = _backend_row(name, not seen.problem, version, install, seen.problem)
                    rows += [row] if subject == "backends" else _device_rows(name, seen)
        yield subject, rows


def workloads() -> list[dict[str, Any]]:
    """Return one row per workload of the catalogue."""
    from trainmark.workload import catalog
    from trainmark.workload.model import lay_out

    return [
        {
            "name": workload.name,
            "title": workload.title,
            "dataset": workload.dataset,
            "parameters": lay_out(workload).parameters,
            "training_flops_per_example": lay_out(workload).training_flops,
            "published_runs": len(workload.published.runs) if workload.published else 0,
        }
        for workload in map(catalog.find, catalog.names())
    ]


def backends() -> list[dict[str, Any]]:
    """Return one row per backend, installed or not.

    Only plug-ins are imported, since they may need another version of trainmark.
    """
    from trainmark.backends import registry
    from trainmark.execute.parent.examine import version_of
    from trainmark.execute.parent.probe import THIS, probe

    rows = []
    for entry in registry.entries().values():
        version = version_of(entry) if entry.installed else None
        problem = probe(THIS, entry.name).problem if entry.plugin and entry.installed else None
        usable = entry.installed and not problem
        rows.append(_backend_row(entry.name, usable, version, entry.install, problem))
    return rows


def _backend_row(
    name: str, installed: bool, version: str | None, install: str, problem: str | None
) -> dict[str, Any]:
    row = {"name": name, "installed": installed, "version": version, "install": install}
    if problem:
        row["problem"] = problem
    return row


def devices(preparation: PreparationObserver) -> list[dict[str, Any]]:
    """Return one row per backend and device, as the backend reports it."""
    from trainmark.backends import registry
    from trainmark.execute.parent.probe import THIS, probe

    rows = []
    for entry in registry.entries().values():
        if entry.installed:
            preparation.asking(entry.name)
            rows += _device_rows(entry.name, probe(THIS, entry.name))
    return rows


def _device_rows(name: str, seen: Seen) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "backend": name,
            "device": device.id,
            "name": device.name,
            "memory_bytes": device.memory_bytes,
            "styles": list(seen.can.styles) if seen.can else [],
            "precisions": list(device.precisions),
            _TESTED: device.tested,
        }
        for device in seen.devices
    ]
    if seen.problem:
        rows.append({"backend": name, "device": None, "name": seen.problem})
    return rows


def _there(interpreter: Interpreter, preparation: PreparationObserver) -> list[tuple[Seen, str]]:
    """Probe the backends of another interpreter; return each with the command that installs it.

    Built-in backends that don't work are left out, unless none works.
    """
    from trainmark.backends import registry
    from trainmark.execute.parent.probe import backends_of, probe

    found = []
    for name, install in backends_of(interpreter).items():
        preparation.asking(f"{name}@{interpreter.label}")
        found.append((probe(interpreter, name), install))
    built_in = {entry.name for entry in registry.entries().values() if not entry.plugin}
    if all(seen.problem for seen, _ in found):
        return found
    return [each for each in found if not each[0].problem or each[0].backend not in built_in]


def datasets() -> list[dict[str, Any]]:
    """Return one row per dataset."""
    from trainmark.data.catalog import CATALOG

    return [
        {
            "name": known.name,
            "title": known.title,
            "train_examples": known.examples("train"),
            "test_examples": known.examples("test"),
        }
        for known in CATALOG.values()
    ]


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    if all(row.get(_TESTED, True) for row in rows):  # the usual case, which needs no column
        names = [name for name in names if name != _TESTED]
    numbers: set[str] = set()
    for row in rows:
        numbers |= {name for name, value in row.items() if type(value) is int}
    fields = [
        Field(
            name.replace("_", " "),
            partial(_cell, name),
            "right" if name in numbers else "left",
            optional=place > 1,
        )
        for place, name in enumerate(names)
    ]
    return table_of(rows, fields, title=title)


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(value) if isinstance(value, list) else str(value)
