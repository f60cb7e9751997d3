"""A run that failed to learn, trained again up to where it went wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.analysis.diagnosis import Diagnosis, Replay, diagnose
from trainmark.data.locate import Located
from trainmark.execute.parent import request as requests
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.process import converse
from trainmark.execute.parent.request import Request, Watcher
from trainmark.execute.protocol.answers import Answer, Replayed, StepInspected
from trainmark.execute.protocol.requests import Replay as ReplayRequest
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.study.explain.measure import Tell
from trainmark.workload.model import lay_out
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

_MOST_STEPS = 5_000
"""Of a run that did not learn: what kept it from learning shows early."""


@dataclass(frozen=True)
class Subject:
    """A run that is to be trained again.

    Args:
        side: who trains; as in the record, as far as that is still there.
        device_name: of the device that is here.
        dataset: what it was trained on, as it is here.
    """

    record: Record
    workload: Workload
    side: Side
    device_name: str | None
    dataset: Located


@dataclass(frozen=True)
class Failed:
    """What became of a run that is not as it should be.

    Args:
        repeated: whether the replay diverged, too; None of a run that did not.
        notes: sentences for people: what in the replay was not as in the run.
    """

    record: Record
    replay: Replay
    diagnosis: Diagnosis
    repeated: bool | None
    notes: tuple[str, ...]


def needs_diagnosis(record: Record) -> bool:
    """Whether the question is why it does not learn, and not why it is slow."""
    wrong = {Caveat.NOT_LEARNING, Caveat.UNMOVED_WEIGHTS} & {*record.caveats}
    broke_off = record.outcome.status == "failed" and not record.epochs
    return record.outcome.status == "diverged" or bool(wrong) or broke_off


def prepare(record: Record, request: Request, watcher: Watcher) -> Subject:
    """Find who can train ``record``'s run again, and its data.

    Args:
        request: of :func:`trainmark.study.again.request_of`.

    Raises:
        UsageError, DataError: its backend, its device or its data are not here.
    """
    selection = requests.select(request, watcher)
    ((workload, able),) = selection.able
    side = able[0]
    device = selection.by_side[side.backend, side.interpreter.label].device(side.device)
    return Subject(
        record, workload, side, device.name if device else None, requests.locate_one(request, workload, watcher)
    )


def diagnose_run(subject: Subject, tell: Tell, timeout: float | None = None) -> Failed:
    """Train the run again and look at the steps around its failure.

    Args:
        tell: told what is being done.
        timeout: seconds that the process may take.
    """
    record, side = subject.record, subject.side
    steps = _steps(subject)
    heard: list[Answer] = []

    def look(counted: int) -> None:
        # Once to find the step, and up to there again for each of the steps that are opened.
        tell(f"{counted:,} steps made again", min(counted / (4 * steps), 1.0))

    request = ReplayRequest(
        side.backend,
        subject.workload,
        subject.dataset.folder,
        side.options(record.seed or 0, record.threads, record.memory_fraction),
        steps,
    )
    ending = converse(
        side.interpreter.path, lambda _: request, hear=heard.append, look=look, threads=record.threads, timeout=timeout
    )
    replay = replay_of(heard, subject.workload, side.precision, ending.reason)
    repeated = replay.failed_at is not None if record.outcome.status == "diverged" else None
    return Failed(record, replay, diagnose(replay), repeated, tuple(_notes(record, replay)))


def replay_of(heard: Sequence[Answer], workload: Workload, precision: str, stopped: str | None) -> Replay:
    """What the process that trained again said; ``stopped`` is why it ended early, if it did."""
    said = next((answer for answer in heard if isinstance(answer, Replayed)), None)
    return Replay(
        losses=tuple(said.losses) if said else (),
        failed_at=said.failed_at if said else None,
        opened=tuple(answer.inspection for answer in heard if isinstance(answer, StepInspected)),
        loss_kind=workload.loss.kind,
        precision=precision,
        classes=lay_out(workload).classes,
        stopped=stopped,
    )


def _steps(subject: Subject) -> int:
    """Up to where the run diverged; else as many as it made or was to make, within reason."""
    record, workload = subject.record, subject.workload
    if record.outcome.step is not None:
        return record.outcome.step + 1
    planned = epoch_sizes(workload.schedule, workload.batches, subject.dataset.train_examples)
    made = sum(epoch.steps or 0 for epoch in record.epochs) or sum(len(epoch) for epoch in planned)
    return min(made, _MOST_STEPS)


def _notes(record: Record, replay: Replay) -> list[str]:
    notes = []
    if record.weights_from is not None or (record.protocol == "continued" and record.repeat):
        notes.append("the run began with weights that had been trained before; the replay can only begin from new ones")
    if record.backend.style == "idiomatic":
        notes.append("the batches came in an order given by trainmark, not in the framework's own")
    if record.outcome.status == "diverged" and replay.losses:
        if replay.failed_at is None:
            notes.append(
                f"in {len(replay.losses):,} steps the replay did not fail, so it depends on chance or on order"
            )
        elif replay.failed_at != record.outcome.step:
            notes.append(f"the run failed at step {record.outcome.step}, the replay at step {replay.failed_at}")
    if replay.losses and not math.isfinite(replay.losses[0]):
        notes.append("the very first loss is not finite")
    return notes
