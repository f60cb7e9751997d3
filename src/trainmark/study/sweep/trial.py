"""Train one trial, an ordinary run, with the interpreter and data of the machine it was sent to."""

from __future__ import annotations

import dataclasses
import os
import platform
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark import regular
from trainmark.data.cache import cache_dir
from trainmark.data.locate import Located, locate
from trainmark.errors import DataUnavailable, TrainmarkError
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import THIS, Interpreter, Seen, probe
from trainmark.execute.parent.scheduler import RunObserver, RunStopped, execute
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.protocol.answers import Answer, Evaluated, Ready
from trainmark.record import codec
from trainmark.record.record import Outcome, Record
from trainmark.record.store import Store

Answers = Mapping[tuple[str, str], Seen]
"""What backends support, by (backend, interpreter label)."""
Report = Mapping[str, Any]
"""What Ray Tune's scheduler gets per epoch: ``epoch``, counted from 1, and ``test_accuracy``."""


@dataclass(frozen=True)
class Recorded:
    """A trial has ended, successfully or not; its encoded records, that of the whole trial last."""

    trial: int
    records: tuple[bytes, ...]


@dataclass(frozen=True)
class Died:
    """The process that trained a trial has died; ``retried`` says whether the trial is retried."""

    trial: int
    reason: str
    retried: bool


class EpochReporter(RunObserver):
    """Reports every epoch except the last, after which there is nothing to stop.

    Args:
        report: called with each epoch's report.
        stopped: returns whether the trial must end now; called a few times a second.
    """

    def __init__(self, report: Callable[[Report], None], stopped: Callable[[], bool]) -> None:
        self._report = report
        self._stopped = stopped
        self._epochs = 0

    def answered(self, task: Task[Any], answer: Answer) -> None:  # noqa: ARG002
        """Report an epoch once it is evaluated."""
        if isinstance(answer, Ready):
            self._epochs = answer.epochs
        elif isinstance(answer, Evaluated) and answer.index + 1 < self._epochs:
            learnt = {"test_accuracy": answer.test_accuracy, "test_loss": answer.test_loss}
            self._report({"epoch": answer.index + 1, **learnt})

    def counted(self, task: Task[Any], steps: int) -> None:  # noqa: ARG002
        """End the run if Tune says so."""
        if self._stopped():
            raise RunStopped("stopped early by the sweep's scheduler (--asha)")


def train_here(task: Task[Run], seen: Answers, observer: RunObserver) -> tuple[bytes, ...]:
    """Train ``task`` on this machine.

    Returns:
        Its encoded records; if data is missing, a failed record that names this machine.
    """
    try:
        task = _at_home(task)
    except TrainmarkError as error:
        records = failed(task, seen, f"on {platform.node()}: {error}")
    else:
        records = execute([task], seen, _Nowhere(Path(os.devnull)), observer)
    return tuple(codec.encode(each) for each in records)


def ask_here(interpreter: Interpreter, backend: str) -> Seen:
    """Probe ``backend`` on this machine."""
    return dataclasses.replace(probe(_own(interpreter), backend), interpreter=interpreter)


def failed(task: Task[Run], seen: Answers, reason: str) -> list[Record]:
    """Return the record of a trial of which only the failure is known."""
    side = task.first.side
    of_side = seen[side.backend, side.interpreter.label]
    builder = TrainingRecordBuilder(
        task.first, of_side, read_machine_state(), None, False, secrets.token_hex(4)
    )
    return builder.records(Outcome("failed", reason))


def _at_home(task: Task[Run]) -> Task[Run]:
    """Return ``task`` with the interpreter and the data of this machine."""
    run = task.first
    scheduled = dataclasses.replace(run.scheduled, dataset=_found(run.scheduled.dataset))
    side = dataclasses.replace(run.side, interpreter=_own(run.side.interpreter))
    return Task((dataclasses.replace(run, scheduled=scheduled, side=side),))


def _own(interpreter: Interpreter) -> Interpreter:
    """Return this process's interpreter, unless --python named another."""
    if interpreter.label != THIS.label:
        return interpreter
    return Interpreter(THIS.label, Path(sys.executable))


def _found(wanted: Located) -> Located:
    """Find the same data on this machine, without downloading.

    It may be in the same folder, in TRAINMARK_DATA or in the cache.

    Raises:
        DataError: the data is missing or differs.
    """
    variable = os.environ.get("TRAINMARK_DATA")
    located = locate(
        wanted.name,
        named=_existing(wanted.directory),
        environment=_existing(Path(variable) if variable else None),
        cache=cache_dir(),
        download=False,
    )
    if located.sha256 == wanted.sha256:
        return located.windows(wanted.window)
    raise DataUnavailable(
        f"{wanted.name} in {located.directory} differs",
        expected=f"sha256 {wanted.sha256[:16]}",
        found=located.sha256[:16],
        fix=f"Copy the folder {wanted.directory} to that machine.",
    )


def _existing(folder: Path | None) -> Path | None:
    return folder if folder and regular.is_folder(folder) else None


class _Nowhere(Store):
    """Writes nothing: the sweep writes the records."""

    def write(self, record: Record, *, continues: bool = False) -> Path:
        """Return the path that the record would have."""
        del continues
        return self.folder / f"{record.id}.json"
