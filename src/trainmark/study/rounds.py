"""Rounds until the verdict is decided, or the budget is spent.

The planned rounds train to the end, since they judge learning too; the others stop after their slices. Some of these
come first, so that there is an interval soon, and more come afterwards. Looking often and stopping at the first verdict
would find a difference between equal sides sooner or later, so the verdict is looked at after a few planned numbers of
rounds only, by wider intervals, and the last interval is wider for it, too
(:data:`~trainmark.analysis.statistics.LOOK_CONFIDENCE`).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.comparison import MARGIN, compare
from trainmark.analysis.noise import smallest_difference
from trainmark.analysis.slices import FEWEST_KEPT, SliceComparison, blocks_that_pay, compare_slices, deviations
from trainmark.analysis.statistics import FEWEST_FOR_INTERVAL, LOOK_CONFIDENCE
from trainmark.errors import UsageError
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.task import AnyRun, Task
from trainmark.measure.host import usable_core_numbers
from trainmark.measure.neighbours import Neighbours
from trainmark.record.caveats import EXTERNAL_SHARE
from trainmark.record.record import Record, Slice, are_disturbed
from trainmark.report.labels import labels
from trainmark.units import many, percent, ratio, seconds, significant

LOOKS = (3, 6, 12, 24)
"""Numbers of rounds after which the verdict may end the measuring; the first look is after all that are planned."""
MOST_LOAD = 0.75
"""Share of the cores' time in use by others above which fewer threads would not help."""
BLOCKS, GPU_BLOCKS = 12, 4
"""Of slices, which are longer on a GPU, in a round that does not train to the end, until it is known how many pay."""


@dataclass(frozen=True)
class Budget:
    """How long a verdict may take.

    Args:
        seconds: from the start of the first round; no round begins that would probably end later.
        margin: what still counts as the same speed, a fraction.
    """

    seconds: float = 60.0
    margin: float = MARGIN

    def __post_init__(self) -> None:
        for name, value in (("the budget", self.seconds), ("the margin", self.margin)):
            if not 0 <= value < math.inf:
                raise UsageError(f"{name} is out of bounds", expected="a number from 0", found=f"{value:g}")


def rounds_within(
    budget: Budget,
    planned: Sequence[Task[AnyRun]],
    execute: Callable[[list[Task[AnyRun]]], list[Record]],
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
    looks: Sequence[int] = LOOKS,
    neighbours: Neighbours | None = None,
    between: Callable[[], None] = lambda: None,
) -> list[Record]:
    """Carry out ``planned``, and more rounds of it while the verdict is open and the budget allows.

    Args:
        planned: rounds of fresh runs.
        execute: carries tasks out.
        tell: called with who disturbs, what can be found, and why there are no more rounds.
        looks: numbers of rounds after which the verdict may end them.
        neighbours: other processes on this machine.
        between: called once, between the first rounds of slices and the first training to the end; the budget does
            not count its time.

    Returns:
        The records of all rounds.
    """
    neighbours = neighbours or Neighbours()
    warn_if_busy(neighbours, planned[0].first, tell)
    start = clock()
    records: list[Record] = []

    def carry_out(tasks: list[Task[AnyRun]]) -> None:
        is_first = not records
        records.extend(execute(tasks))
        if is_first and tasks[0].round != planned[-1].round:  # otherwise reported at the end
            _tell_disturbed(records, neighbours, tell, above=FEWEST_KEPT)

    for tasks in _early(planned) if budget.seconds else ():
        began = clock()
        carry_out(tasks)
        if 2 * clock() - began - start > budget.seconds:
            break
    paused = clock()
    between()
    start += clock() - paused
    has_early = bool(records)
    for tasks in first_round_apart(planned):
        if has_early and tasks[0].round != planned[0].round and _all_ok(records):
            tell(_so_far(records, clock() - start))
        carry_out(tasks)
    number = 1 + max(record.round for record in records)
    looks = (max(number, looks[0]), *looks[1:]) if looks else ()
    round_seconds = (clock() - start) / number
    while _all_ok(records):
        passed = clock() - start
        after = f"after {many(number, 'round')} in {seconds(passed)}"
        if number in looks and _decided(records, budget.margin):
            tell(f"{after} the verdict is decided")
            break
        found = smallest_difference(_spread(records), number * max(budget.seconds / passed, 1.0)) if passed else None
        if passed + round_seconds > budget.seconds:
            if budget.seconds:
                hope = "" if found is None else f"; differences below {percent(found, 1)} need a longer one"
                tell(f"{after} the budget of {seconds(budget.seconds)} is spent{hope}")
            break
        if looks and number == looks[0] and found is not None:
            tell(f"{after} the verdict is open; the budget can show differences from about {percent(found, 1)} on")
        began = clock()
        blocks = _blocks(records, budget.seconds - passed) or _first_blocks(planned)
        carry_out(_round(planned, number, blocks, observed=all(record.observed for record in records)))
        number, round_seconds = number + 1, clock() - began
    _tell_disturbed(records, neighbours, tell)
    return records


def warn_if_busy(neighbours: Neighbours, run: AnyRun, tell: Callable[[str], None]) -> None:
    """Say how much of the machine others use, and what helps: fewer threads, if there is a free core for each."""
    load, cores = neighbours.load(), len(usable_core_numbers())
    if not load.is_high:
        return
    free = max(int(cores * (1 - load.taken)), 1)
    fewer = isinstance(run, Run) and load.taken < MOST_LOAD and free < (run.settings.threads or cores)
    named = _named(neighbours, "uses")
    facts = [f"{percent(load.taken, 0)} of the CPU is in use by others{f' ({named})' if named else ''}"]
    if load.stolen > EXTERNAL_SHARE:
        facts.append(f"the host of this virtual machine takes {percent(load.stolen, 0)}")
    if load.waiting is not None and load.waiting > EXTERNAL_SHARE:
        facts.append(f"processes wait for a core {percent(load.waiting, 0)} of the time")
    facts.append(f"--threads {free} would be steadier" if fewer else "stop other programs, or measure later")
    tell(f"note: {'; '.join(facts)}")


def _early(planned: Sequence[Task[AnyRun]]) -> Iterator[list[Task[AnyRun]]]:
    """Rounds of slices alone that come before trainings to the end: with the first of these enough for an interval."""
    run: object = planned[0].first
    if not isinstance(run, Run) or run.blocks is not None:
        return
    number = 1 + max(task.round for task in planned)
    for more in range(FEWEST_FOR_INTERVAL - 1):
        yield _round(planned, number + more, _first_blocks(planned))


def first_round_apart(planned: Sequence[Task[AnyRun]]) -> list[list[Task[AnyRun]]]:
    """Return the tasks of the first round, and all others; it may fail, or complete the first interval."""
    first = planned[0].round
    parts = ([each for each in planned if (each.round == first) is wanted] for wanted in (True, False))
    return [part for part in parts if part]


def _so_far(records: Sequence[Record], passed: float) -> str:
    """What the first interval says."""
    comparison = compare(records)
    names = labels([group.key for group in comparison.groups])
    found = [
        f"{name} {ratio(speedup.ratio)} [{significant(speedup.low)}, {significant(speedup.high)}]"
        for position, (name, group) in enumerate(zip(names, comparison.groups, strict=True))
        if not comparison.is_reference(position)
        and (speedup := group.speedup).low is not None
        and speedup.high is not None
    ]
    return f"after {seconds(passed)}: {', '.join(found)}" if found else f"after {seconds(passed)}: no interval yet"


def _all_ok(records: Iterable[Record]) -> bool:
    return all(record.outcome.status == "ok" for record in records)


def _slices_by_block(records: Iterable[Record]) -> dict[tuple[str, int, int], list[Slice]]:
    """Those of all sides, by workload, round and block."""
    found: dict[tuple[str, int, int], list[Slice]] = {}
    for record in records:
        for each in record.slices:
            found.setdefault((record.workload.name, record.round, each.block), []).append(each)
    return found


def _tell_disturbed(
    records: Iterable[Record], neighbours: Neighbours, tell: Callable[[str], None], above: float = 0.0
) -> None:
    """Say how many blocks others disturbed, and who, if their share of all blocks is ``above`` this."""
    slices = _slices_by_block(records)
    if (disturbed := sum(map(are_disturbed, slices.values()))) <= above * len(slices):
        return
    named = _named(neighbours, "used") or "processes that have ended, or that can't be seen from here"
    tell(f"other processes disturbed {disturbed} of {many(len(slices), 'block')}: {named}")


def _named(neighbours: Neighbours, verb: str) -> str:
    return ", ".join(
        f"{each.name} (pid {each.pid}) {verb} {percent(each.cores, 0)} of a core" for each in neighbours.busiest()
    )


def _comparisons(records: Sequence[Record]) -> list[SliceComparison]:
    """Every side against the first one of its workload."""
    comparison = compare(records)
    compared = [
        compare_slices(comparison.measured[group.reference].records, comparison.measured[position].records)
        for position, group in enumerate(comparison.groups)
        if group.reference not in (None, position)
    ]
    return [sliced for sliced in compared if sliced is not None]


def _spread(records: Sequence[Record]) -> float | None:
    """The largest standard deviation of a log ratio between rounds; None where there are too few."""
    known = [sliced.kept for sliced in _comparisons(records) if len(sliced.kept) >= FEWEST_FOR_INTERVAL]
    return max(map(statistics.stdev, known), default=None)


def _blocks(records: Sequence[Record], left: float) -> int | None:
    """How many blocks of a round pay; as many as the side that needs most. None where there are too few to tell.

    Args:
        left: seconds of the budget.
    """
    rounds = {record.round for record in records}
    starts = statistics.fmean(_start_seconds([each for each in records if each.round == of]) for of in rounds)
    blocks = _slices_by_block(records)
    needed = [
        blocks_that_pay(deviation, starts, _seconds(blocks.values()) / len(blocks), len(rounds), left)
        for sliced in _comparisons(records)
        if (deviation := deviations(sliced.ratios)) is not None
    ]
    return max(needed, default=None)


def _start_seconds(of_a_round: Sequence[Record]) -> float:
    """Processes start at the same time, and compile one after the other."""
    slowest = max(each.setup_seconds or 0.0 for each in of_a_round)
    return slowest + sum(each.compile_seconds or 0.0 for each in of_a_round)


def _seconds(blocks: Iterable[Sequence[Slice]]) -> float:
    """With the steps that were not timed."""
    return sum(each.seconds * each.steps / each.timed_steps for slices in blocks for each in slices)


def _decided(records: Sequence[Record], margin: float) -> bool:
    """Whether every side has a verdict by the interval of a look, and the same by the interval that will be printed.

    Runs without slices are compared by one interval of 95 %, which is too narrow to be looked at several times.
    """
    look, printed = compare(records, margin=margin, confidence=LOOK_CONFIDENCE), compare(records, margin=margin)
    return all(
        group.speedup.of == "slice" and group.speedup.verdict == last.speedup.verdict != "unclear"
        for position, (group, last) in enumerate(zip(look.groups, printed.groups, strict=True))
        if not look.is_reference(position)
    )


def _round(planned: Sequence[Task[AnyRun]], number: int, blocks: int, *, observed: bool = False) -> list[Task[AnyRun]]:
    """One more round of every side; of a training, or of an ``observed`` command, slices alone."""
    last = max(task.round for task in planned)
    again: list[Task[Any]] = [task.in_round(number) for task in planned if task.round == last]
    return [slices_alone(each, blocks) if observed or isinstance(each.first, Run) else each for each in again]


def slices_alone(task: Task[AnyRun], blocks: int | None = None) -> Task[AnyRun]:
    """The same without a training to the end."""
    return Task(tuple(dataclasses.replace(run, blocks=blocks or _first_blocks([task])) for run in task.runs))


def _first_blocks(tasks: Iterable[Task[Any]]) -> int:
    """More of a command, whose slices are those of a CPU unless it was given a device."""
    runs = (task.first for task in tasks)
    return GPU_BLOCKS if any(isinstance(run, Run) and run.side.device != "cpu" for run in runs) else BLOCKS
