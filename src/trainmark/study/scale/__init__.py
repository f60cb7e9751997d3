"""How much faster are several devices? Train the same on one device and on several.

Averaged gradients of several devices equal those of one device, so the losses must agree; this is
checked as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from trainmark.analysis.scale import Scaling
from trainmark.analysis.scale_results import results
from trainmark.analysis.summary import MEASURED
from trainmark.errors import Unsupported, UsageError
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Run, Settings, Side
from trainmark.execute.parent.probe import Interpreter, Seen, probe
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task, remaining
from trainmark.measure.host import usable_core_numbers
from trainmark.record.facts import RunKey, group_to_complete
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide
from trainmark.study.layouts import require_able
from trainmark.study.scale.question import Question, require_possible, tasks
from trainmark.workload.model import lay_out
from trainmark.workload.reduce import with_batch, without_chance
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class ScalePlan(ChosenSide):
    """What will be run; its planned workload is that of one device.

    Args:
        notices: sentences for the user.
    """

    question: Question
    tasks: list[Task[Run]]
    notices: list[str]


def prepare(request: RunRequest, question: Question, preparation: PreparationObserver) -> ScalePlan:
    """Find the side and the data, and lay out the rounds.

    Args:
        request: of one workload, one backend, one style and one device; by default the best of
            each.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    request = dataclasses.replace(request, styles=request.styles or ("fast",))
    selection = run_requests.select(request, preparation, _ask)
    ((workload, able),) = selection.able
    side = _one(able, request)
    seen = selection.by_side[side.backend, side.interpreter.label]
    spreads = _spreads(seen)
    if spreads == "devices" and question.rendezvous.nodes > 1:
        raise Unsupported(
            f"{side.backend} can only spread copies over the devices of one machine",
            expected="torch",
        )
    for _, stages in question.layouts:
        require_able(side, stages, spreads)
    cores = len(usable_core_numbers())
    processes = spreads == "processes"
    threads = _threads(request, question, side, cores, processes=processes)
    settings = dataclasses.replace(request.settings, kind="scale", threads=threads)
    plain = _plain(workload, question)
    accelerators = sum(device.kind == "accelerator" for device in seen.devices)
    require_possible(question, side, plain, accelerators, cores, threads or 1)
    dataset = run_requests.locate_one(request, workload, preparation)
    why_not = _why_not_compared(plain, seen, side)
    judged = not question.weak and why_not is None
    planned = tasks(question, plain, dataset, side, settings, processes=processes, judged=judged)
    notices = [*selection.refused, *_notices(workload, question, side, settings, cores)]
    if why_not and not question.weak:
        notices.append(f"losses are not compared, since {why_not}")
    return ScalePlan(planned[0].first.scheduled, side, seen, settings, question, planned, notices)


def measure(
    plan: ScalePlan,
    store: Store,
    observer: RunObserver,
    earlier: Sequence[Record] = (),
    *,
    labels: Mapping[str, str] | None = None,
) -> list[Record]:
    """Run what is planned but has no record among ``earlier``.

    With several machines the first failure ends the study, since the others may already be at
    another run.

    Args:
        labels: labels of this machine, for the records.

    Returns:
        The earlier and the new records.
    """
    left = remaining(plan.tasks, earlier)
    planned = {task.first.key for task in plan.tasks}
    group = group_to_complete(planned, earlier)
    known = _newest([record for record in earlier if record.group.id == group], planned)
    several = plan.question.rendezvous.nodes > 1
    together = [[task] for task in left] if several else [left]
    # Each of these tasks has its own parent.
    apart: list[object] = [task.first.group_id for task in left] if several else []
    seen = {(plan.side.backend, plan.side.interpreter.label): plan.seen}
    found: list[Record] = []
    for some in together:
        found += execute(
            some, seen, store, observer, partial(read_machine_state, labels), apart=apart
        )
        if any(record.outcome.status != "ok" for record in found):
            break
    return known + found


def _newest(records: Sequence[Record], planned: set[RunKey]) -> list[Record]:
    """Return the newest finished record of each planned run and rank."""
    finished = [record for record in records if record.outcome.status in MEASURED]
    found = {(RunKey.of(record), record.group.rank): record for record in finished}
    return [record for (key, _), record in found.items() if key in planned]


def conclude(plan: ScalePlan, records: Sequence[Record]) -> Scaling:
    """Compute the results from ``records``."""
    question = plan.question
    side = plan.side
    return Scaling(
        workload=plan.scheduled.workload.name,
        dataset=plan.scheduled.dataset.name,
        backend=side.backend,
        style=side.style,
        device=side.device,
        precision=side.precision,
        mode="weak" if question.weak else "strong",
        batch=plan.batch,
        steps=question.steps,
        repeats=question.repeats,
        threads=plan.settings.threads,
        nodes=question.rendezvous.nodes,
        layouts=results(records),
        notices=tuple(plan.notices),
    )


def _why_not_compared(workload: Workload, seen: Seen, side: Side) -> str | None:
    """Return why losses may differ, or None; in float64, rounding can't hide a mistake."""
    if lay_out(workload).joins_examples:
        return "batch norm on each copy uses only its share of the batch"
    device = seen.device(side.device)
    if device is None or "fp64" not in device.precisions:
        return f"{side.backend} does not train in float64 on {side.device}"
    return None


def _ask(interpreter: Interpreter, name: str) -> Seen:
    """Probe a backend; refuse one that can't spread a training before its styles are checked."""
    seen = probe(interpreter, name)
    if seen.can is not None:
        _spreads(seen)
    return seen


def _spreads(seen: Seen) -> Literal["processes", "devices"]:
    """Return what the backend spreads a training over."""
    if seen.can is None or seen.can.spreads is None:
        raise Unsupported(
            f"{seen.backend} does not spread a training over several devices",
            expected="torch or jax",
        )
    return seen.can.spreads


def _one(able: Sequence[Side], request: RunRequest) -> Side:
    """Choose the side; without ``--device``, on an accelerator if available."""
    if not request.devices:
        accelerators = [side for side in able if side.device != "cpu"]
        able = (accelerators or able)[:1]
    if len(able) > 1:
        raise UsageError(
            "scale takes one side",
            expected="one backend, one style and one device",
            found=", ".join(side.title for side in able),
        )
    return able[0]


def _threads(
    request: RunRequest, question: Question, side: Side, cores: int, *, processes: bool
) -> int | None:
    """Choose the threads of a rank, the same in all layouts, which differ in hardware only."""
    asked = request.settings.threads
    if side.device != "cpu":
        return asked
    if not processes:
        if asked not in (None, 1):
            raise Unsupported(
                f"each of {side.backend}'s CPU devices has one thread", expected="--threads 1"
            )
        return 1
    return asked or max(1, cores // question.most_ranks)


def _plain(workload: Workload, question: Question) -> Workload:
    """Return the workload without randomness, as for parity, with the requested batch size."""
    plain = without_chance(workload)
    size = question.batch or workload.batches.size
    return plain if size == "full" else with_batch(plain, size)


def _notices(
    workload: Workload, question: Question, side: Side, settings: Settings, cores: int
) -> Iterator[str]:
    if workload.deterministic() != workload:
        yield "dropout and distortions are off, so that losses can be compared"
    ranks = question.most_ranks
    if side.device == "cpu" and ranks * (settings.threads or 1) > cores:
        yield (
            f"{ranks} ranks share {cores} cores, so larger layouts don't show the effect of "
            "more hardware"
        )
