"""A run that failed to learn, trained again up to where it went wrong."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.analysis.diagnosis import Diagnosis, Opened, Replay, diagnose
from trainmark.data.locate import Located
from trainmark.data.progress import Progress, silent
from trainmark.execute import request as requests
from trainmark.execute.child import converse
from trainmark.execute.plan import Side
from trainmark.execute.request import Request
from trainmark.execute.wire import Message
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


def prepare(record: Record, request: Request, cache: Path, progress: Progress = silent) -> Subject:
    """Find who can train ``record``'s run again, and its data.

    Args:
        request: of :func:`trainmark.study.again.request_of`.

    Raises:
        UsageError, DataError: its backend, its device or its data are not here.
    """
    selection = requests.select(request)
    ((workload, able),) = selection.able
    located, _ = requests.locate_all(request, [workload], cache, progress)
    side = able[0]
    device = selection.by_side[side.backend, side.interpreter.label].device(side.device)
    return Subject(record, workload, side, device.name if device else None, located[workload.dataset])


def diagnose_run(subject: Subject, tell: Tell, timeout: float | None = None) -> Failed:
    """Train the run again and look at the steps around its failure.

    Args:
        tell: told what is being done.
        timeout: seconds that the process may take.
    """
    record, side = subject.record, subject.side
    steps = _steps(subject)
    heard: list[Message] = []

    def look(counted: int) -> None:
        # Once to find the step, and up to there again for each of the steps that are opened.
        tell(f"{counted:,} steps made again", min(counted / (4 * steps), 1.0))

    ending = converse(
        side.interpreter.path,
        lambda _: _request(subject, steps),
        hear=heard.append,
        look=look,
        threads=record.threads,
        timeout=timeout,
    )
    stopped = next((message["reason"] for message in heard if message["event"] == "failed"), ending.reason)
    replay = replay_of(heard, subject.workload, side.precision, stopped)
    repeated = replay.failed_at is not None if record.outcome.status == "diverged" else None
    return Failed(record, replay, diagnose(replay), repeated, tuple(_notes(record, replay)))


def replay_of(heard: Sequence[Message], workload: Workload, precision: str, stopped: str | None) -> Replay:
    """What the process that trained again said; ``stopped`` is why it ended early, if it did."""
    said = next((message for message in heard if message["event"] == "replayed"), None)
    return Replay(
        losses=tuple(said["losses"]) if said else (),
        failed_at=said["failed_at"] if said else None,
        opened=tuple(_opened(message) for message in heard if message["event"] == "opened"),
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


def _request(subject: Subject, steps: int) -> Message:
    record, side = subject.record, subject.side
    options = side.options(record.seed or 0, record.threads, record.memory_fraction)
    return {
        "event": "replay",
        "backend": side.backend,
        "workload": dataclasses.replace(subject.workload, published=None).to_data(),
        "dataset": {"name": subject.workload.dataset, "directory": str(subject.dataset.directory)},
        "options": options.to_data(),
        "steps": steps,
    }


def _opened(message: Message) -> Opened:
    return Opened(
        step=message["step"],
        loss=message["loss"],
        tensors=tuple(message["tensors"]),
        reference_loss=message["reference_loss"],
        gap=message["gap"],
        bad_labels=tuple(message["bad_labels"]),
        unchanged=tuple(message["unchanged"]),
        finite_after=message["finite_after"],
        moved=message["moved"],
        alone=tuple(message["alone"]),
    )


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
