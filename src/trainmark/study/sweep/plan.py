"""Turn a grid and ranges into trials: ordinary runs with different values."""

from __future__ import annotations

import dataclasses
import itertools
import platform
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from trainmark.analysis.sweep import is_trial
from trainmark.backends.base import device_of_rank, is_numbered
from trainmark.data.catalog import find
from trainmark.data.locate import Located
from trainmark.errors import Unsupported, UsageError
from trainmark.execute.parent import choose
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Side, Spreading, Trial
from trainmark.execute.parent.probe import Interpreter, Seen
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.execute.parent.task import Task, remaining
from trainmark.masking import mask
from trainmark.record.facts import RunKey, group_to_complete
from trainmark.record.record import Record
from trainmark.study.layouts import layout_of, require_able, require_divisible, require_shareable
from trainmark.study.sweep.trial import Report
from trainmark.workload import catalog
from trainmark.workload.grid import GridPoint, drawn, points, read_grid, read_ranges
from trainmark.workload.reduce import with_batch
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

DEFAULT_SAMPLES = 10
"""Default number of draws from ranges, for each combination of the grid."""
_RANGE = "--range learning_rate=0.001..0.1:log"
Ask = Callable[[Interpreter, str], Seen]


@dataclass(frozen=True)
class SweepPlan:
    """What will be run.

    Args:
        tasks: one per remaining trial.
        trials: number of all trials, including finished ones.
        seen: what each backend supports, by (backend, interpreter label).
        finished: the epoch reports of each finished trial, by trial.
    """

    tasks: tuple[Task[Run], ...]
    trials: int
    side: Side
    seen: Mapping[tuple[str, str], Seen]
    group_id: str
    finished: Mapping[int, tuple[Report, ...]] = field(default_factory=dict)

    @property
    def accelerators(self) -> int:
        """Number of accelerators that the backend sees."""
        seen = self.seen[self.side.backend, self.side.interpreter.label]
        return sum(device.kind == "accelerator" for device in seen.devices)

    @property
    def epochs(self) -> int:
        """Largest number of epochs of a trial."""
        scheduled_workloads = [task.first.scheduled for task in self.tasks]
        return max(
            _epochs(scheduled.workload, scheduled.dataset.train_examples)
            for scheduled in scheduled_workloads
        )

    @property
    def title(self) -> str:
        """The workload and the side."""
        return f"{self.tasks[0].first.scheduled.workload.name} on {self.side.title}"

    def side_by_side(self, others: bool) -> SweepPlan:
        """Return the plan, with records that say whether ``others`` train at the same time."""
        tasks = tuple(_changed(task, side_by_side=others) for task in self.tasks)
        return dataclasses.replace(self, tasks=tasks)


def read(
    request: RunRequest,
    grid: Iterable[str],
    ranges: Iterable[str],
    samples: int | None,
    *,
    asha: bool,
) -> list[GridPoint]:
    """Parse the requested trials, without starting anything.

    Args:
        grid: ``KEY=A,B``; every combination is a trial.
        ranges: ``KEY=LOW..HIGH``, from which ``samples`` values are drawn for each combination.
        asha: whether bad trials are stopped early; this needs evaluation after each epoch.

    Raises:
        UsageError: with what was expected, what was found, and what to do.
    """
    values = read_grid(grid)
    spans = read_ranges(ranges)
    if not values and not spans:
        raise UsageError(
            "there is nothing to vary",
            fix=f"Add --grid learning_rate=0.1,0.01 or {_RANGE}, for example",
        )
    if samples and not spans:
        raise UsageError("--samples has no range to draw from", fix=f"Add {_RANGE}, for example")
    workload = run_requests.scheduled(catalog.find(request.workloads[0]), request)
    workload = workload.with_schedule(protocol="fresh")
    if asha:
        workload = workload.with_schedule(evaluate="every-epoch")
    made = points(workload, values, drawn(spans, samples or DEFAULT_SAMPLES, request.settings.seed))
    for point in made:
        run_requests.scheduled(point.workload, RunRequest())  # checks that it still fits its data
    examples = find(workload.dataset).examples("train")
    if asha and all(_epochs(point.workload, examples) == 1 for point in made):
        raise UsageError(
            "--asha stops trials between epochs", expected="2 epochs or more", found="1"
        )
    return made


def prepare(
    request: RunRequest,
    trials: Sequence[GridPoint],
    preparation: PreparationObserver,
    ask: Ask,
    layout: tuple[int, int] | None,
) -> SweepPlan:
    """Choose the side, find the data, and lay out the runs.

    Args:
        request: of one workload, on one device.
        ask: probes a backend on the machine that runs the trials.
        layout: copies of each trial's network, and stages per copy; None is one process.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    selection = run_requests.select(request, preparation, ask)
    ((workload, able),) = selection.able
    side = min(able, key=lambda side: (side.device == "cpu", side.style != "fast"))
    asked = (side.style,), (side.device,), side.precision, request.settings
    for point in trials:
        choose.choose_sides(point.workload, selection.seen, *asked)
    located = run_requests.locate_one(request, workload, preparation)
    if layout is not None:
        there = selection.by_side[side.backend, side.interpreter.label]
        trials = [_spreadable(point, layout, side, there, located) for point in trials]
    group_id = secrets.token_hex(6)

    def task(number: int, point: GridPoint) -> Task[Run]:
        seed = request.settings.seed if point.seed is None else point.seed
        settings = dataclasses.replace(request.settings, kind="sweep", seed=seed)
        spread = Spreading(layout_of(point.workload, *layout)) if layout else None
        data = located.windows(point.workload.input.length)
        scheduled = ScheduledWorkload(point.workload, data, 1)
        trial = Trial(number, point.values)
        place = (0, number - 1, group_id, group_id)
        return Task((Run(scheduled, side, settings, *place, trial=trial, spread=spread),))

    tasks = tuple(itertools.starmap(task, enumerate(trials, 1)))
    return SweepPlan(tasks, len(tasks), side, selection.by_side, group_id)


def without_done(planned: SweepPlan, records: Iterable[Record]) -> SweepPlan:
    """Return the plan without the trials that earlier ``records`` finished.

    It becomes part of the sweep that it completes. Which machine trained a trial doesn't matter. A
    trial keeps its number; new trials get unused ones.
    """
    trials = [record for record in records if is_trial(record) and record.group.rank is None]
    sweeps = [_as_here(record, planned.side) for record in trials]
    wanted = {task.first.key for task in planned.tasks}
    group = group_to_complete(wanted, sweeps)
    if group is None:
        return planned
    mine = {RunKey.of(record): record for record in sweeps if record.group.id == group}
    numbers = {key: record.group.trial for key, record in mine.items()}
    free = (number for number in itertools.count(1) if number not in numbers.values())
    tasks = tuple(
        _changed(task, group_id=group, number=numbers.get(task.first.key) or next(free))
        for task in remaining(planned.tasks, mine.values())
    )
    done = wanted - {task.first.key for task in tasks}
    finished = {
        record.group.trial or 0: _reports(record) for key, record in mine.items() if key in done
    }
    return dataclasses.replace(planned, tasks=tasks, group_id=group, finished=finished)


def _epochs(workload: Workload, examples: int) -> int:
    """Return a trial's number of epochs, also if its length is given in steps."""
    return len(epoch_sizes(workload.schedule, workload.batches, examples))


def _changed(task: Task[Run], *, group_id: str | None = None, **trial: Any) -> Task[Run]:
    """Return the task with another sweep, or with other fields of its :class:`Trial`."""
    run = task.first
    assert run.trial is not None
    changed = dataclasses.replace(run.trial, **trial)
    run = dataclasses.replace(run, group_id=group_id or run.group_id, trial=changed)
    return Task((run,))


def require_own_gpu(device: str, gpus: float, ranks: int = 1) -> None:
    """Raise UsageError for GPUs that a trial won't see.

    Ray shows a trial only its own GPUs, numbered from 0.

    Args:
        ranks: ranks of a trial; each needs a GPU.
    """
    number = int(device.partition(":")[2]) if is_numbered(device) else None
    if gpus > 1 and gpus != int(gpus):
        raise UsageError(
            f"--gpus-per-trial {gpus:g} can't be reserved",
            expected="a fraction of one, or whole GPUs",
        )
    if number is not None and ranks > 1 and gpus < ranks:
        problem = f"the {ranks} ranks of a trial need a GPU each"
        raise UsageError(problem, expected=f"--gpus-per-trial {ranks}", found=f"{gpus:g}")
    if number is not None and gpus and number >= max(gpus, 1):
        first = device_of_rank(device, 0)
        raise UsageError(
            f"a trial does not see {device}",
            expected=f"{first}, since Ray gives each trial its own GPUs, numbered from 0",
            fix=f"Use --device {first}, or --gpus-per-trial 0 if all trials should share that GPU.",
        )


def _spreadable(
    point: GridPoint, layout: tuple[int, int], side: Side, seen: Seen, dataset: Located
) -> GridPoint:
    """Return the trial with a batch that its copies can share, of constant size.

    Raises:
        UsageError: its batch or its network can't be divided, or its backend can't start several
            ranks.
    """
    spreads = seen.can.spreads if seen.can else None
    if spreads != "processes":
        raise Unsupported(f"{seen.backend} does not train on several processes", expected="torch")
    data, stages = layout
    require_able(side, stages, spreads)
    require_divisible(point.workload, data, stages)
    require_shareable(point.workload, data, dataset)
    size = point.workload.batches.size
    if size == "full":
        return point
    return dataclasses.replace(point, workload=with_batch(point.workload, size))


def _as_here(record: Record, side: Side) -> Record:
    """Return ``record`` as if it had been made on this machine."""
    return structs.replace(
        record,
        machine=structs.replace(record.machine, name=platform.node()),
        python=structs.replace(record.python, executable=mask(str(side.interpreter.path))),
    )


def _reports(record: Record) -> tuple[Report, ...]:
    """Return a finished trial's reports to the scheduler, as ``EpochReporter`` makes them."""
    return tuple(
        {
            "epoch": epoch.index + 1,
            "test_accuracy": epoch.test_accuracy,
            "test_loss": epoch.test_loss,
        }
        for epoch in record.epochs
        if epoch.test_accuracy is not None
    )
