"""From a grid to trials: ordinary runs, each with its values, and those of them that are left to do."""

from __future__ import annotations

import dataclasses
import itertools
import platform
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from trainmark.data.locate import Located
from trainmark.data.progress import Progress, silent
from trainmark.errors import Unsupported, UsageError
from trainmark.execute import choose, plan, probe
from trainmark.execute import request as requests
from trainmark.execute.plan import Course, Run, Settings, Side, Spreading, Task, Trial
from trainmark.execute.probe import Interpreter, Seen
from trainmark.execute.request import Prepared, Request
from trainmark.record.record import Record
from trainmark.study.layouts import layout_of, require_able, require_divisible, require_shareable
from trainmark.workload import catalog
from trainmark.workload.grid import Point, points, read_grid
from trainmark.workload.reduce import with_batch


@dataclass(frozen=True)
class Plan:
    """What will be run.

    Args:
        tasks: a trial each.
        trials: how many there are in all, done ones among them.
        seen: what the backend said, by (backend, interpreter label).
        notices: sentences for people.
    """

    tasks: tuple[Task, ...]
    trials: int
    side: Side
    seen: Mapping[tuple[str, str], Seen]
    group_id: str
    notices: tuple[str, ...] = ()


def read(request: Request, words: Iterable[str]) -> list[Point]:
    """The trials that the grid in ``words`` makes of the request's workload; nothing is started for that.

    Raises:
        UsageError: with what was expected, what was found, and what to do.
    """
    grid = read_grid(words)
    if not grid:
        raise UsageError(
            "there is nothing to vary", expected="a grid", fix="Such as --grid learning_rate=0.1,0.01 hidden=128,512"
        )
    workload = requests.scheduled(catalog.find(request.workloads[0]), request)
    made = points(workload.with_schedule(protocol="fresh"), grid)
    for point in made:
        requests.scheduled(point.workload, Request())  # whether it still fits its data
    return made


def prepare(
    request: Request,
    trials: Sequence[Point],
    cache: Path,
    *,
    progress: Progress = silent,
    asking: Callable[[str], None] = lambda _: None,
    ask: Callable[[Interpreter, str], Seen] = probe.probe,
    layout: tuple[int, int] | None = None,
) -> Plan:
    """Find who trains, and the data, and lay out the runs.

    Args:
        request: of one workload, on one device.
        cache: folder of trainmark's own copies of datasets.
        progress: told of downloads.
        asking: told which backend is being asked what it can do.
        ask: asks an interpreter about a backend, where the trials will be.
        layout: copies and stages that each trial's network is spread over; None is one process.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    selection = requests.select(request, asking, ask)
    ((workload, able),) = selection.able
    side = _best(able, selection.seen)
    for point in trials:
        choose.choose_sides(point.workload, selection.seen, (side.style,), (side.device,), side.precision)
    located, _ = requests.locate_all(request, [workload], cache, progress)
    group_id = session = secrets.token_hex(6)
    settings = dataclasses.replace(request.settings, kind="sweep")
    if layout is not None:
        there = selection.by_side[side.backend, side.interpreter.label]
        trials = [_spreadable(point, layout, side, there, located[point.workload.dataset]) for point in trials]
    tasks = [
        _task(
            Course(point.workload, located[point.workload.dataset], 1), side, settings, number, point, session, layout
        )
        for number, point in enumerate(trials, 1)
    ]
    return Plan(tuple(tasks), len(tasks), side, selection.by_side, group_id)


def without_done(planned: Plan, records: Iterable[Record]) -> Plan:
    """What is left of a plan when ``records`` exist already, as a part of the sweep that it completes.

    Where a trial ran does not matter, and a trial keeps its number; new ones get numbers that none has.
    """
    sweeps = [_as_here(record, planned.side) for record in records if record.group.kind == "sweep"]
    identities = {task.first.identity for task in planned.tasks}
    groups = [record.group.id for record in sweeps if plan.identity_of(record) in identities]
    if not groups:
        return planned
    mine = [record for record in sweeps if record.group.id == groups[-1]]
    left = requests.without_done(Prepared(list(planned.tasks), dict(planned.seen), []), mine).tasks
    numbers = {plan.identity_of(record): record.group.trial for record in mine}
    free = itertools.count(1 + max(record.group.trial or 0 for record in mine))
    taken = set(numbers.values())
    tasks = []
    for task in left:
        trial = _trial_of(task)
        known = numbers.get(task.first.identity)
        number = known or (next(free) if trial.number in taken else trial.number)
        taken.add(number)
        tasks.append(with_trial(task, dataclasses.replace(trial, number=number)))
    return dataclasses.replace(planned, tasks=tuple(tasks), group_id=groups[-1])


def require_own_gpu(device: str, gpus: float, ranks: int = 1) -> None:
    """Raise UsageError for GPUs that a trial will not see: Ray shows it its own ones alone, counted from 0.

    Args:
        ranks: of a trial, each of which takes a GPU.
    """
    if gpus > 1 and gpus != int(gpus):
        raise UsageError(
            f"{gpus:g} GPUs can't be set aside", expected="a fraction of one, or whole ones", fix="--gpus-per-trial"
        )
    if device.startswith("cuda") and ranks > 1 and gpus < ranks:
        raise UsageError(
            f"the {ranks} ranks of a trial need a GPU each",
            expected=f"--gpus-per-trial {ranks}",
            found=f"{gpus:g}",
        )
    kind, _, index = device.partition(":")
    if kind == "cuda" and gpus and index.isdecimal() and int(index) >= max(gpus, 1):
        raise UsageError(
            f"a trial does not see {device}",
            expected="cuda:0: Ray gives each trial GPUs of its own, and shows it no others",
            fix="--device cuda:0, or --gpus-per-trial 0 where all trials are to share that one.",
        )


def accelerators(planned: Plan) -> int:
    """How many the backend sees where it was asked."""
    seen = planned.seen[planned.side.backend, planned.side.interpreter.label]
    return sum(device.kind == "accelerator" for device in seen.devices)


def with_trial(task: Task, trial: Trial) -> Task:
    """The same as another trial."""
    return dataclasses.replace(task, runs=tuple(dataclasses.replace(run, trial=trial) for run in task.runs))


def _trial_of(task: Task) -> Trial:
    assert task.first.trial is not None
    return task.first.trial


def _task(
    course: Course,
    side: Side,
    settings: Settings,
    number: int,
    point: Point,
    group_id: str,
    layout: tuple[int, int] | None,
) -> Task:
    if point.seed is not None:
        settings = dataclasses.replace(settings, seed=point.seed)
    trial = Trial(number, point.values)
    spread = Spreading(layout_of(point.workload, *layout)) if layout else None
    return Task((Run(course, side, settings, 0, number - 1, group_id, group_id, trial=trial, spread=spread),))


def _spreadable(point: Point, layout: tuple[int, int], side: Side, seen: Seen, dataset: Located) -> Point:
    """The trial with a batch that its copies can share, always of one size.

    Raises:
        UsageError: its batch or its network can't be divided so, or its backend starts no ranks.
    """
    spreads = seen.can.spreads if seen.can else None
    if spreads != "processes":
        raise Unsupported(f"{seen.backend} does not train on several processes", expected="torch")
    data, stages = layout
    require_able(side, stages, spreads)
    require_divisible(point.workload, data, stages)
    require_shareable(point.workload, data, dataset)
    size = point.workload.batches.size
    return point if size == "full" else dataclasses.replace(point, workload=with_batch(point.workload, size))


def _best(able: Sequence[Side], seen: Sequence[Seen]) -> Side:
    """An accelerator before the CPU, and ``fast`` before ``idiomatic``; one of them, since trials differ in values."""
    kinds = {device.id: device.kind for each in seen for device in each.devices}
    return min(able, key=lambda side: (kinds.get(side.device) == "cpu", side.style != "fast"))


def _as_here(record: Record, side: Side) -> Record:
    """``record`` as if it had been made on this machine."""
    return structs.replace(
        record,
        machine=structs.replace(record.machine, name=platform.node()),
        python=structs.replace(record.python, executable=str(side.interpreter.path)),
    )
