"""One trial, where it is carried out: an ordinary run, with its data and its interpreter as they are there."""

from __future__ import annotations

import dataclasses
import os
import platform
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from trainmark import regular
from trainmark.data.locate import Located, locate
from trainmark.errors import DataUnavailable, TrainmarkError
from trainmark.execute.here import Here, look_around
from trainmark.execute.notes import Notes
from trainmark.execute.plan import Task
from trainmark.execute.probe import THIS, Interpreter, Seen, probe
from trainmark.execute.scheduler import Job, Planned, execute
from trainmark.execute.wire import Message
from trainmark.measure.sampler import Row
from trainmark.record import codec
from trainmark.record.record import Outcome, Record
from trainmark.record.store import Store

Answers = Mapping[tuple[str, str], Seen]
"""What backends said of themselves, by (backend, interpreter label)."""


def train_here(task: Task, seen: Answers) -> list[bytes]:
    """Carry out ``task`` on this machine.

    Returns:
        Its records, encoded. What is missing here makes records of failed runs that name this machine.
    """
    try:
        task = _at_home(task)
    except TrainmarkError as error:
        return [codec.encode(each) for each in failed(task, seen, f"on {platform.node()}: {error}", look_around())]
    return [codec.encode(each) for each in execute([task], seen, _Nowhere(Path(os.devnull)), _Nobody())]


def ask_here(interpreter: Interpreter, backend: str) -> Seen:
    """What ``backend`` can do on this machine."""
    return dataclasses.replace(probe(_own(interpreter), backend), interpreter=interpreter)


def failed(task: Task, seen: Answers, reason: str, here: Here) -> list[Record]:
    """The records of a task of which nothing but its failure is known."""
    side, token = task.first.side, secrets.token_hex(4)
    of_side = seen[side.backend, side.interpreter.label]
    return [Notes(run, of_side, here, None, False, token).record(Outcome("failed", reason)) for run in task.runs]


def _at_home(task: Task) -> Task:
    """``task`` with the interpreter and the data of this machine."""
    run = task.first
    course = dataclasses.replace(run.course, dataset=_found(run.course.dataset))
    side = dataclasses.replace(run.side, interpreter=_own(run.side.interpreter))
    return dataclasses.replace(
        task, runs=tuple(dataclasses.replace(each, course=course, side=side) for each in task.runs)
    )


def _own(interpreter: Interpreter) -> Interpreter:
    """The interpreter that this process runs in, where no other was named."""
    return Interpreter(THIS.label, Path(sys.executable)) if interpreter.label == THIS.label else interpreter


def _found(wanted: Located) -> Located:
    """The same bytes on this machine: in the same folder, in TRAINMARK_DATA, or in the cache; nothing is downloaded.

    Raises:
        DataError: they are not here.
    """
    named = os.environ.get("TRAINMARK_DATA")
    try:
        here = locate(
            wanted.name,
            named=wanted.directory if regular.is_folder(wanted.directory) else None,
            environment=Path(named) if named and regular.is_folder(Path(named)) else None,
            cache=Path(platformdirs.user_cache_dir("trainmark")),
            download=False,
        )
    except DataUnavailable:
        raise DataUnavailable(
            f"there is no {wanted.name}",
            expected=f"it in {wanted.directory}, in the folder of TRAINMARK_DATA or in the cache",
            fix="Copy it to that machine.",
        ) from None
    if here.sha256 != wanted.sha256:
        raise DataUnavailable(
            f"{wanted.name} in {here.directory} is not that of the other trials",
            expected=f"sha256 {wanted.sha256[:16]}",
            found=here.sha256[:16],
            fix=f"Copy the folder {wanted.directory} to that machine.",
        )
    return here


class _Nowhere(Store):
    """Writes nothing: the sweep does, in the folder that was asked for."""

    def write(self, record: Record) -> Path:
        """The path that the record would have."""
        return self.folder / f"{record.id}.json"


class _Nobody:
    """Watches nothing: the one who waits for the records is in another process."""

    def task_started(self, task: Job) -> None:
        """A process begins."""

    def run_started(self, run: Planned, replayed: bool) -> None:
        """A run begins."""

    def heard(self, message: Message) -> None:
        """News."""

    def counted(self, steps: int) -> None:
        """Steps."""

    def sampled(self, rows: Sequence[Row], gpu: int | None) -> None:
        """Samples."""

    def recorded(self, record: Any) -> None:
        """A record."""

    def task_ended(self, task: Job) -> None:
        """The process is gone."""
