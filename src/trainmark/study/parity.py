"""Same weights, same batches, nothing random: do the losses agree?

Every side is trained unchanged, and again from nudged initial weights; :mod:`trainmark.analysis.parity` judges the
losses. Every run is a fresh process and leaves a record.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence

from trainmark.analysis.parity import MULTIPLE, NUDGES, Parity, Rounding, curve_of, judge_all
from trainmark.errors import UsageError
from trainmark.execute.parent import request as requests
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.request import Prepared, Request, Watcher
from trainmark.execute.parent.scheduler import Observer, execute
from trainmark.execute.parent.task import Task
from trainmark.execute.worker.nudge import STORED_BITS, nudged_bits
from trainmark.record.store import Store
from trainmark.workload.precision import PRECISIONS, Precision
from trainmark.workload.spec import Workload

DEFAULT_DEVICES = ("cpu",)
"""Every backend supports it, so naming two backends gives one pair that differs only in the backend."""


def prepare(request: Request, watcher: Watcher | None = None) -> Prepared:
    """Find the sides and the data, and lay out the runs.

    Args:
        request: of one workload. The default device is the CPU, the default style each backend's best.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    request = dataclasses.replace(request, devices=request.devices or DEFAULT_DEVICES)
    selection = requests.select(request, watcher)
    ((workload, able),) = selection.able
    sides = tuple(able if request.styles else _in_best_style(able))
    _require_two(sides, selection.refused)
    course = ScheduledWorkload(without_chance(workload), requests.locate_one(request, workload, watcher), repeats=1)
    settings = dataclasses.replace(request.settings, kind="parity")
    return Prepared(_tasks(course, sides, settings), selection.by_side, selection.refused)


def measure(plan: Prepared, store: Store, observer: Observer) -> Parity:
    """Train all that is planned, and judge every pair of sides.

    Args:
        store: where the records are written.
        observer: notified of all events.
    """
    records = execute(plan.tasks, plan.seen, store, observer)
    sides, first = plan.sides, plan.tasks[0].first
    curves = [curve_of(side.title, *records[position :: len(sides)]) for position, side in enumerate(sides)]
    precision = sides[0].precision
    return Parity(
        workload=first.course.workload.name,
        dataset=first.course.dataset.name,
        precision=precision,
        seed=first.settings.seed,
        steps=first.course.workload.schedule.steps or 0,
        nudges=NUDGES,
        multiple=MULTIPLE,
        pairs=judge_all(curves, rounding_of(precision)),
        left_out=tuple(plan.notices),
    )


def rounding_of(precision: Precision) -> Rounding:
    """Return the arithmetic of ``precision``; below float32, losses are still float32."""
    bits = PRECISIONS[precision].fraction_bits
    return Rounding(unit=2.0 ** -max(bits, STORED_BITS), share=2.0 ** (nudged_bits(precision) - bits))


def _in_best_style(able: Sequence[Side]) -> list[Side]:
    """Choose ``fast`` if a backend has it, else its only style."""
    best: dict[tuple[object, ...], Side] = {}
    for side in able:
        where = (side.backend, side.interpreter, side.device)
        if where not in best or side.style == "fast":
            best[where] = side
    return list(best.values())


def _require_two(sides: Sequence[Side], refused: Sequence[str]) -> None:
    if len(sides) < 2:
        raise UsageError(
            "parity needs two sides",
            expected="at least two of: backends, styles, devices, interpreters",
            found="; ".join([*(f"{side.title} alone" for side in sides), *refused]),
            fix="Add one: --backend torch,numpy or --style idiomatic,fast or --device cpu,cuda:0.",
        )


def without_chance(workload: Workload) -> Workload:
    """Return the workload without dropout and distortions, evaluated only at the end."""
    plain = dataclasses.replace(
        workload.deterministic(), metrics=dataclasses.replace(workload.metrics, train="running"), published=None
    )
    return plain.with_schedule(evaluate="end", protocol="fresh")


def _tasks(course: ScheduledWorkload, sides: Sequence[Side], settings: Settings) -> list[Task[Run]]:
    group_id = session = secrets.token_hex(6)
    return [
        Task((Run(course, side, settings, 0, turn, group_id, session, nudge=turn or None),))
        for turn in range(1 + NUDGES)
        for side in sides
    ]
