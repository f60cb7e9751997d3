"""Check step by step that backends, styles and devices compute what the definition says.

The reference computes the steps once, in float64. Every side then computes them in a fresh process,
and compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.analysis.parity import Parity, SideParity, judge, pairs_of
from trainmark.backends.base import Options
from trainmark.errors import ParityFailed, UsageError
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.plan import ScheduledWorkload, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.process import ask, ask_all
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.execute.protocol.answers import (
    Answer,
    FreeLosses,
    NotChecked,
    ReferenceComputed,
    StepChecked,
    of_kind,
)
from trainmark.execute.protocol.worker_commands import CheckParity, ComputeReference
from trainmark.scratch import scratch_folder
from trainmark.study.observer import OnProgress, ignore_progress

DEFAULT_DEVICES = ("cpu",)
"""Every backend supports it."""
_REFERENCE = "numpy"


@dataclass(frozen=True)
class ParityPlan:
    """What is compared.

    Args:
        free_steps: steps of the free training.
        notices: a sentence for each requested side that can't take part.
    """

    request: RunRequest
    scheduled: ScheduledWorkload
    sides: tuple[Side, ...]
    free_steps: int
    notices: tuple[str, ...]


def prepare(
    request: RunRequest, free_steps: int, preparation: PreparationObserver | None = None
) -> ParityPlan:
    """Find the sides and the data.

    Args:
        request: of one workload. The default device is the CPU, the default style each backend's
            best.
        free_steps: steps of the free training.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    request = dataclasses.replace(request, devices=request.devices or DEFAULT_DEVICES)
    selection = run_requests.select(request, preparation)
    ((workload, able),) = selection.able
    sides = tuple(able if request.styles else _in_best_style(able))
    if sides[0].precision == "fp16":
        raise UsageError(
            "parity can't compare fp16, whose loss scaling skips updates",
            expected="fp32, tf32, bf16 or fp64",
            found="fp16",
            fix="Use --precision bf16.",
        )
    scheduled = ScheduledWorkload(
        workload, run_requests.locate_one(request, workload, preparation), repeats=1
    )
    return ParityPlan(request, scheduled, sides, free_steps, tuple(selection.refused))


def measure(plan: ParityPlan, on_progress: OnProgress = ignore_progress) -> Parity:
    """Compute the steps with the reference, and compare every side with it.

    Raises:
        ParityFailed: the reference itself could not compute them.
    """
    workload = plan.scheduled.workload
    dataset = plan.scheduled.dataset
    settings = plan.request.settings
    precision = plan.sides[0].precision
    parts = 1 + len(plan.sides)
    with scratch_folder() as folder:
        place = str(Path(folder) / "steps.npz")

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, ReferenceComputed):
                on_progress("reference", answer.done / answer.of / parts)

        options = Options("idiomatic", "cpu", precision, settings.seed)
        reference_command = ComputeReference(_REFERENCE, workload, dataset.folder, options, place)
        _, ending = ask(
            THIS.path,
            reference_command,
            on_answer=on_answer,
            threads=settings.threads,
            timeout=settings.timeout,
        )
        if ending.status != "done":
            found = ending.reason or "no answer"
            raise ParityFailed("the reference could not compute the steps", found=found)
        sides = []
        on_progress(plan.sides[0].title, 1 / parts)
        for number, side in enumerate(_judged(plan, place), start=2):
            sides.append(side)
            on_progress(side.title, number / parts)
    pairs = pairs_of(sides)
    return Parity(
        workload.name, dataset.name, precision, settings.seed, tuple(sides), pairs, plan.notices
    )


def _judged(plan: ParityPlan, place: str) -> Iterator[SideParity]:
    """Check each side; on the CPU two at a time, since nothing is timed."""
    workload = plan.scheduled.workload
    folder = plan.scheduled.dataset.folder
    settings = plan.request.settings

    def question(side: Side) -> tuple[Path, CheckParity]:
        options = side.options(settings.seed, settings)
        return side.interpreter.path, CheckParity(
            side.backend, workload, folder, options, place, plan.free_steps
        )

    at_once = 2 if all(side.device == "cpu" for side in plan.sides) else 1
    questions = list(map(question, plan.sides))
    answered = ask_all(
        questions, at_once=at_once, threads=settings.threads, timeout=settings.timeout
    )
    for side, (received, ending) in zip(plan.sides, answered, strict=True):
        losses: list[float] = []
        for answer in of_kind(received, FreeLosses):
            losses += answer.losses
        trouble = None
        if ending.status != "done":
            how = "timeout" if ending.status == "timeout" else "failed"
            trouble = f"{how}, {ending.reason}"
        yield judge(
            side.title,
            [answer.checks for answer in of_kind(received, StepChecked)],
            [answer.what for answer in of_kind(received, NotChecked)],
            losses,
            trouble,
        )


def _in_best_style(able: Sequence[Side]) -> list[Side]:
    """Choose ``fast`` if a backend has it, else its only style."""
    best: dict[tuple[object, ...], Side] = {}
    for side in able:
        where = (side.backend, side.interpreter, side.device)
        if where not in best or side.style == "fast":
            best[where] = side
    return list(best.values())
