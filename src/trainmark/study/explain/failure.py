"""Train a run that failed to learn again, up to the step where it went wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmark.analysis.diagnosis import Diagnosis, Replay, diagnose
from trainmark.execute.protocol.answers import Answer, Replayed, StepInspected, of_kind
from trainmark.execute.protocol.worker_commands import ReplayTraining
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.study.chosen import ChosenSide
from trainmark.study.observer import OnProgress
from trainmark.workload.model import lay_out
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

_MOST_STEPS = 5_000
"""Maximum replayed steps of a run that did not learn; the cause shows early."""


@dataclass(frozen=True)
class DiagnosedRun:
    """Why a run failed to learn.

    Args:
        repeated: whether the replay diverged too; None if the run did not diverge.
        notes: how the replay differs from the run, in sentences.
    """

    diagnosis: Diagnosis
    repeated: bool | None
    notes: tuple[str, ...]
    replay: Replay


def needs_diagnosis(record: Record) -> bool:
    """Whether to explain why it does not learn, instead of why it is slow."""
    wrong = {Caveat.NOT_LEARNING, Caveat.UNMOVED_WEIGHTS} & {*record.caveats}
    broke_off = record.outcome.status == "failed" and not record.epochs
    return record.outcome.status == "diverged" or bool(wrong) or broke_off


def diagnose_run(record: Record, chosen: ChosenSide, on_progress: OnProgress) -> DiagnosedRun:
    """Train the run of ``record`` again and look at the steps around its failure.

    Args:
        chosen: the side that trains it, as in the record as far as it is available here.
    """
    side = chosen.side
    workload = chosen.scheduled.workload
    steps = _steps(record, chosen)

    def on_steps(counted: int) -> None:
        # Once to find the step, and once more for each of the inspected steps.
        on_progress(f"{counted:,} steps replayed", min(counted / (4 * steps), 1.0))

    request = ReplayTraining(
        side.backend, workload, chosen.scheduled.dataset.folder, chosen.options(), steps
    )
    received, ending = chosen.ask(request, on_steps=on_steps)
    replay = replay_of(received, workload, side.precision, ending.reason)
    repeated = replay.failed_at is not None if record.outcome.status == "diverged" else None
    return DiagnosedRun(diagnose(replay), repeated, tuple(_notes(record, replay)), replay)


def replay_of(
    received: Sequence[Answer], workload: Workload, precision: str, stopped: str | None
) -> Replay:
    """Collect the answers of the replaying process; ``stopped`` says why it ended early, if so."""
    replayed = next(iter(of_kind(received, Replayed)), None)
    return Replay(
        losses=tuple(replayed.losses) if replayed else (),
        failed_at=replayed.failed_at if replayed else None,
        opened=tuple(answer.inspection for answer in of_kind(received, StepInspected)),
        loss_kind=workload.loss.kind,
        precision=precision,
        classes=lay_out(workload).classes,
        stopped=stopped,
    )


def _steps(record: Record, chosen: ChosenSide) -> int:
    """Return the steps to replay: up to where the run diverged, or those made, up to a limit."""
    if record.outcome.step is not None:
        return record.outcome.step + 1
    workload = chosen.scheduled.workload
    dataset = chosen.scheduled.dataset
    planned = epoch_sizes(workload.schedule, workload.batches, dataset.train_examples)
    made = sum(epoch.steps or 0 for epoch in record.epochs) or sum(len(epoch) for epoch in planned)
    return min(made, _MOST_STEPS)


def _notes(record: Record, replay: Replay) -> Iterator[str]:
    if record.weights_from is not None or (record.protocol == "continued" and record.repeat):
        yield "the run started from trained weights; the replay can only start from new ones"
    if record.backend.style == "idiomatic":
        yield "the replay used trainmark's order of batches, not the framework's"
    if record.outcome.status == "diverged" and replay.losses:
        if replay.failed_at is None:
            steps = f"{len(replay.losses):,} steps"
            yield (
                f"the replay did not fail in {steps}: the failure depends on chance or on the "
                "batch order"
            )
        elif replay.failed_at != record.outcome.step:
            yield (
                f"the run failed at step {record.outcome.step}, the replay at step "
                f"{replay.failed_at}"
            )
    if replay.losses and not math.isfinite(replay.losses[0]):
        yield "the first loss is already not finite"
