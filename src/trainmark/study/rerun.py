"""Find out how to run a record's training again on this machine."""

from __future__ import annotations

import dataclasses
import shlex

from trainmark.backends.base import resource_limits_of
from trainmark.errors import ForeignRecord, UsageError
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.request import RunRequest
from trainmark.record.record import Record
from trainmark.study.chosen import ChosenSide
from trainmark.workload.decode import Misfit
from trainmark.workload.model import lay_out


def request_of(record: Record, asked: RunRequest) -> RunRequest:
    """Return the request that would run ``record`` again.

    Args:
        record: the record.
        asked: gives the data folder and the time limit.

    Raises:
        ForeignRecord: the record is of a command or of several devices, or its workload can't be
            read.
    """
    style = record.backend.style
    device = record.device.id
    precision = record.backend.precision
    dataset = record.dataset
    seed = record.seed
    if (
        record.process is not None
        or dataset is None
        or seed is None
        or not (style and device and precision)
    ):
        raise ForeignRecord(
            f"{record.id} is a record of a command, which trainmark only measured from outside",
            expected="a record of trainmark run",
            found=shlex.join(record.process.argv) if record.process else "none",
        )
    if (record.group.world or 1) > 1:
        raise ForeignRecord(
            f"{record.id} is a record of a training on {record.group.world} devices",
            expected="a record of a training in one process",
            found=f"{record.group.kind}, {record.group.world} ranks",
        )
    try:
        workload = record.workload.workload
        lay_out(workload)
        settings = dataclasses.replace(asked.settings, seed=seed, **resource_limits_of(record))
    except (Misfit, UsageError) as error:
        problem = f"the workload of {record.id} can't be read"
        raise ForeignRecord(problem, expected=error.expected, found=str(error.found)) from error
    label = "" if record.python.label == "default" else f"@{record.python.label}"
    return dataclasses.replace(
        asked,
        specification=workload,
        dataset=dataset.name if dataset.name != workload.dataset else None,
        backends=(f"{record.backend.name}{label}",),
        styles=(style,),
        devices=(device,),
        precision=precision,
        size=None,
        settings=settings,
    )


def unlike(record: Record, chosen: ChosenSide) -> tuple[str, ...]:
    """Return how the same training here differs from that of ``record``, in sentences."""
    notes = []
    version = chosen.side.version
    device = chosen.device.name if chosen.device else None
    if record.device.kind == "accelerator" and record.device.name != device:
        model = device or "of an unknown model"
        notes.append(f"{record.device.id} is {model} here, and was {record.device.name}")
    if record.dataset and record.dataset.sha256 != chosen.scheduled.dataset.sha256:
        notes.append("the data here differs from the record's")
    if record.backend.version != version:
        was = record.backend.version or "of unknown version"
        now = version or "of unknown version"
        notes.append(f"{record.backend.name} is {now} here, and was {was}")
    if record.outcome.status in ("interrupted", "timeout", "failed"):
        steps = sum(epoch.steps or 0 for epoch in record.epochs)
        notes.append(
            f"the run ended early ({record.outcome.status}, {steps:,} steps in whole epochs)"
        )
    return tuple(notes)


def elsewhere(record: Record) -> str | None:
    """Return why the run can't be repeated on this machine; None if it can."""
    machine = read_machine_state().machine
    there = record.machine
    if (machine.name, machine.cpu, machine.usable_cores) == (
        there.name,
        there.cpu,
        there.usable_cores,
    ):
        return None
    cores = f"{there.usable_cores or 'an unknown number of'} usable cores"
    what = f"{there.name}, {there.cpu or 'unknown CPU'}, {cores}"
    return f"the record was made on another machine ({what})"
