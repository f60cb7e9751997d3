"""Rounds until the verdict is decided, or the budget is spent.

The first two rounds start together and run two blocks each. This *opening* reveals an obvious
difference early. Then their trainings run to the end, to judge learning as well. Further rounds
stop after their slices. Sides whose speed is decided take part in no further blocks.

Looking often and stopping at the first verdict would find a difference between equal sides sooner
or later. So we look at the verdict only after a few planned numbers of rounds. Each early look uses
a wider interval; so does the final one (:data:`~trainmark.analysis.statistics.SLICES_CONFIDENCE`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from trainmark.analysis.answer import answering_pair
from trainmark.analysis.comparison import MARGIN, compare
from trainmark.analysis.noise import smallest_difference
from trainmark.analysis.obvious import BLOCKS as OPENING_BLOCKS
from trainmark.analysis.obvious import ROUNDS as OPENING_ROUNDS
from trainmark.analysis.results import Comparison, GroupResult
from trainmark.analysis.slices import (
    FEWEST_BLOCKS,
    FEWEST_KEPT,
    SliceComparison,
    blocks_that_pay,
    compare_slices,
    deviations,
    steps_a_second,
)
from trainmark.analysis.statistics import FEWEST_FOR_INTERVAL, LOOK_CONFIDENCE
from trainmark.errors import UsageError
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.opening import OpeningListener
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.task import AnyRun, Task, parties
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.measure.host import usable_core_numbers
from trainmark.measure.neighbours import Neighbours
from trainmark.record.caveats import EXTERNAL_SHARE, Caveat
from trainmark.record.facts import Key, RunKey
from trainmark.record.record import Record, Slice, are_disturbed
from trainmark.report.chart_data import chart_data
from trainmark.report.verdict import verdict
from trainmark.units import many, percent, seconds
from trainmark.workload.schedule import epoch_sizes

LOOKS = (2, 3, 6, 12, 24)
"""Numbers of rounds after which the verdict may end the measuring.

Two rounds show an obvious difference only.
"""
MOST_LOAD = 0.75
"""Share of the cores' time in use by others above which fewer threads would not help."""
BLOCKS = 12
"""Blocks of a round of slices on the CPU, until we can estimate the best number."""
GPU_BLOCKS = 4
"""Likewise with a GPU, whose slices are longer, so there are fewer."""
SLOW_START_SECONDS = 10.0
"""Start of processes, in seconds, that makes :data:`LEAST_SLICES_SECONDS` the least of a round."""
LEAST_SLICES_SECONDS = 15.0
"""Least seconds of slices in a round that starts slowly; otherwise starts would take most time."""


@dataclass(frozen=True)
class Budget:
    """How long a verdict may take.

    Args:
        seconds: from the start of the study, so it includes the start of processes, the measurement
            of peaks, and trainings. No round begins that would probably end later, and what still
            runs then is ended. 0 carries out what is planned, without a limit.
        margin: what still counts as the same speed, a fraction.
        keeps_repeats: whether all planned trainings take place, even if they take longer.
    """

    seconds: float = 90.0
    margin: float = MARGIN
    keeps_repeats: bool = True

    def __post_init__(self) -> None:
        for name, value in (("the budget", self.seconds), ("the margin", self.margin)):
            if not 0 <= value < math.inf:
                raise UsageError(
                    f"{name} is out of bounds", expected="a number from 0", found=f"{value:g}"
                )

    def limit(self, began: float, clock: Callable[[], float] = time.perf_counter) -> TimeLimit:
        """Return the time limit of a study that began at this reading of the clock."""
        is_limit = self.seconds > 0 and not self.keeps_repeats
        return TimeLimit(
            self.seconds if is_limit else math.inf,
            began,
            f"the budget of {seconds(self.seconds)}",
            clock=clock,
        )


class MeasurePeaks(Protocol):
    """Finds the peak speeds of the devices."""

    def __call__(self, *, only_kept: bool = False) -> None:
        """Measure the peaks; with ``only_kept``, take only those that are known already."""


def _no_peaks(*, only_kept: bool = False) -> None:
    """Commands have no peaks."""


def _ignore(_text: str) -> None:
    """Ignore a message."""


class Execute(Protocol[AnyRun]):
    """Carries tasks out; with an opening, their rounds start together."""

    def __call__(
        self, tasks: list[Task[AnyRun]], opening: OpeningListener | None = None, /
    ) -> list[Record]:
        """Return the records of ``tasks``."""


def rounds_within(
    budget: Budget,
    planned: Sequence[Task[AnyRun]],
    execute: Execute[AnyRun],
    on_message: Callable[[str], None] = _ignore,
    clock: Callable[[], float] = time.perf_counter,
    looks: Sequence[int] = LOOKS,
    neighbours: Neighbours | None = None,
    measure_peaks: MeasurePeaks = _no_peaks,
    began: float | None = None,
    *,
    adds_rounds: bool = True,
) -> list[Record]:
    """Carry out ``planned``, and more rounds of it while the verdict is open and the budget allows.

    Args:
        planned: rounds of fresh runs.
        execute: carries tasks out.
        on_message: called with messages: the answer so far, which programs disturb, how small a
            difference can be found, and why there are no more rounds.
        looks: numbers of rounds after which the verdict may end them.
        neighbours: other processes on this machine.
        measure_peaks: called once, after the opening and before the first training to the end. If
            the budget is spent by then, it takes kept peaks only.
        began: reading of the clock at which the budget begins; None is now.
        adds_rounds: whether there is a verdict to decide, so that short rounds come before the
            planned ones and after them.

    Returns:
        The records of all rounds.
    """
    neighbours = neighbours or Neighbours()
    warn_if_busy(neighbours, planned[0].first, on_message)
    began = clock() if began is None else began
    rounds = _Rounds(
        budget, planned, execute, on_message, clock, looks, neighbours, measure_peaks, began
    )
    rounds.carry_out_planned(opens=adds_rounds)
    if adds_rounds:
        rounds.add_rounds()
        rounds.report_missing()
    _warn_of_disturbance(rounds.records, neighbours, on_message)
    return rounds.records


class _Rounds(Generic[AnyRun]):
    """The rounds of one call of :func:`rounds_within`; see its arguments.

    As the listener of the opening, it reports the answer and decides which sides and rounds
    continue.
    """

    def __init__(
        self,
        budget: Budget,
        planned: Sequence[Task[AnyRun]],
        execute: Execute[AnyRun],
        on_message: Callable[[str], None],
        clock: Callable[[], float],
        looks: Sequence[int],
        neighbours: Neighbours,
        measure_peaks: MeasurePeaks,
        began: float,
    ) -> None:
        self._budget = budget
        self._limit = budget.limit(began, clock)
        self._planned: Sequence[Task[AnyRun]] = planned
        self._execute: Execute[AnyRun] = execute
        self._on_message = on_message
        self._clock = clock
        self._looks = looks
        self._neighbours = neighbours
        self._measure_peaks = measure_peaks
        self._has_peaks = False
        self._began = began
        self.records: list[Record] = []
        self._titles = {task.first.key.of_side: task.first.title for task in planned}
        self._decided: set[str] = set()
        self._opened: list[Record] = []
        self._rounds_left = len({task.round for task in planned})
        self._start_seconds = 0.0
        self._latest_mark = began
        self._round_seconds = 0.0
        self._share_ends = math.inf
        self._too_long: dict[str, float] = {}

    @property
    def _passed(self) -> float:
        """Seconds since the budget began."""
        return self._clock() - self._began

    # Planned rounds

    def carry_out_planned(self, *, opens: bool) -> None:
        """Carry out the planned rounds.

        Args:
            opens: whether the first two of each subject may have an opening.
        """
        left = list(self._planned)
        if self._budget.seconds and opens:
            openings = _openings(self._planned)
            for number, rounds in enumerate(openings):
                if self._limit.is_reached:
                    break
                # Later subjects get as much time as this one.
                share = self._limit.left / (len(openings) - number)
                self._share_ends = self._passed + share
                self._latest_mark = self._clock()
                self._add(self._execute(rounds, self))
                left = [task for task in left if not any(task is opened for opened in rounds)]
                latest = self._clock() - self._latest_mark
                earlier = self._round_seconds if self._further_rounds_are_alike else 0.0
                # The processes of a further round also have to start.
                self._round_seconds = self._start_seconds + max(earlier, latest)
        self._measure_peaks_once()
        for number in sorted({task.round for task in left}):
            if self._limit.is_reached:
                break
            tasks = self._still_needed([task for task in left if task.round == number])
            if not self._has_time_for_round():  # every side gets one run in any case
                begun = {self._title(record) for record in self.records}
                tasks = [task for task in tasks if task.first.title not in begun]
            if not tasks:
                continue
            before = self._clock()
            self._add(self._execute(_in_equal_steps(tasks, self.records)))
            self._round_seconds = self._clock() - before
        self._report_cut()

    def _has_time_for_round(self) -> bool:
        """Whether another planned round takes place: always, or since the budget allows it."""
        budget = self._budget
        if budget.keeps_repeats or not budget.seconds:
            return True
        return self._passed + self._round_seconds <= budget.seconds

    def _report_cut(self) -> None:
        """Report how many of the planned trainings the budget allowed, unless it allowed all."""
        if not self._budget.seconds or not _all_ok(self.records):
            return
        planned: dict[str, set[int]] = {}
        for task in self._planned:
            if task.first.blocks is None:
                planned.setdefault(task.first.title, set()).add(task.round)
        done = dict.fromkeys(planned, 0)
        for record in self.records:
            title = self._title(record)
            is_whole = record.epochs and Caveat.SHORTENED not in record.caveats
            if is_whole and record.round in planned.get(title, ()):
                done[title] += 1
        allowed = min(done.values(), default=0)
        most = max(map(len, planned.values()), default=0)
        if any(done[title] < len(rounds) for title, rounds in planned.items()):
            text = f"{self._limit.name} allows {allowed} of {many(most, 'training')} per side"
            if self._too_long:
                slowest = max(self._too_long, key=self._too_long.__getitem__)
                text += f" (one takes about {seconds(self._too_long[slowest])} with {slowest})"
            if not allowed:
                text += ", so learning is not judged"
            self._on_message(f"{text}; --budget 0 runs all of them")

    def _still_needed(self, tasks: Sequence[Task[AnyRun]]) -> list[Task[AnyRun]]:
        """Return what is still needed of a planned round.

        Decided sides train without blocks, or are left out.
        """
        needed: list[Task[AnyRun]] = []
        blocks = self.most_blocks(tasks[0].first.blocks)
        for task in tasks:
            is_decided = task.first.title in self._decided
            if task.first.title in self._too_long:
                continue
            if task.first.blocks is not None:
                if not is_decided:
                    needed.append(slices_alone(task, blocks))
            elif is_decided:
                runs = tuple(dataclasses.replace(run, decided=True) for run in task.runs)
                needed.append(Task(runs, task.done))
            else:
                needed.append(task)
        return needed

    def _measure_peaks_once(self) -> None:
        if not self._has_peaks:
            self._has_peaks = True
            is_spent = 0 < self._budget.seconds <= self._passed
            self._measure_peaks(only_kept=is_spent)

    def _add(self, records: Sequence[Record]) -> None:
        is_first = not self.records
        self.records.extend(records)
        planned = {task.round for task in self._planned}
        has_more = len(planned) > len({record.round for record in self.records})
        if is_first and has_more:  # otherwise, it is reported at the end
            _warn_of_disturbance(
                self.records, self._neighbours, self._on_message, above=FEWEST_KEPT
            )

    # The opening

    def opened(self, records: Sequence[tuple[Task[Any], Record]]) -> Collection[str]:
        """Report the answer of the opening.

        Returns:
            The ids of the records whose speed is decided.
        """
        opened = [record for _, record in records]
        self._opened = opened
        if not opened:  # the time was over before
            return set()
        computing = math.fsum(_seconds(_slices_by_block([record]).values()) for record in opened)
        self._start_seconds = max(self._clock() - self._latest_mark - computing, 0.0)
        # With a single side, the others failed, which was reported.
        if len({task.first.title for task, _ in records}) > 1:
            self._report_answers(opened)
        _warn_of_disturbance(opened, self._neighbours, self._on_message, above=FEWEST_KEPT)
        self._decide(opened)
        self._measure_peaks_once()
        self._latest_mark = self._clock()
        self._plan_trainings(records)
        return {record.id for task, record in records if task.first.title in self._decided}

    def continues(self, *, is_first: bool) -> bool:
        """Return whether a round continues after the opening.

        A first training always does, since it shows whether the sides learn. Commands and rounds of
        slices alone only measure speed, so they stop once the speed of every side is decided.
        """
        now = self._clock()
        if not is_first:
            self._round_seconds = now - self._latest_mark
        self._latest_mark = now
        is_training = self._planned[0].first.blocks is None and not self._opened_is_too_long
        if is_training and is_first:
            return True
        if is_training and self._further_rounds_are_alike:
            return self._has_time_for_round()
        return not self._all_are_decided

    def _plan_trainings(self, records: Sequence[tuple[Task[Any], Record]]) -> None:
        """Decide whether the trainings of this subject fit; if not, it has slices alone."""
        needed: dict[str, float] = {}
        for task, record in records:
            training = _training_seconds(task.first, record)
            if training is not None:
                needed[task.first.title] = training
        # The sides train one after the other.
        if self._passed + math.fsum(needed.values()) > min(self._share_ends, self._limit.seconds):
            self._too_long |= needed

    @property
    def _opened_is_too_long(self) -> bool:
        """Whether the trainings of the subject that was opened last don't fit."""
        return any(self._title(record) in self._too_long for record in self._opened)

    @property
    def _further_rounds_are_alike(self) -> bool:
        """Whether the second round does what the first one does.

        After a single planned training, it has slices alone.
        """
        run = self._planned[0].first
        return run.blocks is not None or len({task.round for task in self._planned}) > 1

    def most_blocks(self, planned: int | None) -> int | None:
        """Return the number of blocks of a round, within the budget; None to train to the end."""
        run = self._planned[0].first
        is_whole = planned is None and not self._opened_is_too_long
        if is_whole or (isinstance(run, Run) and math.isinf(self._limit.seconds)):
            return planned
        planned = planned or _first_blocks(self._planned)
        blocks = _slices_by_block(self._opened)
        block_seconds = _seconds(blocks.values()) / max(len(blocks), 1)
        after_opening = len({task.round for task in self._planned}) - OPENING_ROUNDS
        not_started = max(min(self._rounds_left, after_opening), 0)
        starts = self._start_seconds * not_started
        ends = min(self._budget.seconds, self._share_ends)
        share = (ends - self._passed - starts) / max(self._rounds_left, 1)
        self._rounds_left -= 1
        fitting = int(share / block_seconds) if block_seconds else 0
        fewest = FEWEST_BLOCKS if math.isinf(self._limit.seconds) else 0
        return min(planned, OPENING_BLOCKS + max(fitting, fewest))

    def _report_answers(self, records: Sequence[Record]) -> None:
        """Report the answer for each workload of these records."""
        for work in chart_data(compare(records, margin=self._budget.margin)):
            self._on_message(f"after {seconds(self._passed)}: {verdict(work).text}")

    # More rounds

    def add_rounds(self) -> None:
        """Carry out more rounds of slices while the verdict is open and the budget allows."""
        if not self.records:
            return
        number = 1 + max(record.round for record in self.records)
        first_look = max(number, self._looks[0]) if self._looks else 0
        looks = {first_look, *self._looks[1:]} if self._looks else set()
        self._round_seconds = (
            self._seconds_after_trainings() or self._round_seconds or self._passed / number
        )
        while True:
            records = self._comparable()
            if not records:
                break
            passed = self._passed
            after = f"after {many(number, 'round')} in {seconds(passed)}"
            if number in looks and self._decide(records):
                self._on_message(f"{after} the verdict is decided")
                break
            in_budget = number * max(self._budget.seconds / passed, 1.0) if passed else 0.0
            smallest = smallest_difference(_spread(records), in_budget)
            if passed + self._round_seconds > self._budget.seconds:
                self._report_spent(after, smallest)
                break
            if number == first_look and smallest is not None:
                shown = f"differences from about {percent(smallest, 1)} on"
                self._on_message(f"{after} the verdict is open; the budget can show {shown}")
            tasks = self._next_round(records, number, self._budget.seconds - passed)
            if not tasks:  # the speed of every side is decided, but one of them does not learn
                self._on_message(f"{after} the verdict on speed is decided")
                break
            before = self._clock()
            self._add(self._execute(_in_equal_steps(tasks, self.records)))
            number += 1
            self._round_seconds = self._clock() - before

    def _seconds_after_trainings(self) -> float:
        """Estimate the shortest further round if the planned ones were trainings, else 0.

        It takes much less time than a training, so a training must not be its measure.
        """
        blocks = _slices_by_block(self.records)
        if self._planned[0].first.blocks is not None or not blocks:
            return 0.0
        block_seconds = _seconds(blocks.values()) / len(blocks)
        starts = self._start_seconds or _start_seconds(self.records)
        return starts + FEWEST_BLOCKS * block_seconds

    def _report_spent(self, after: str, smallest: float | None) -> None:
        if not self._budget.seconds:
            return
        hope = ""
        if smallest is not None:
            hope = f"; differences below {percent(smallest, 1)} need a longer one"
        budget = seconds(self._budget.seconds)
        why = f"another round would not fit into the budget of {budget}"
        if self._passed >= self._budget.seconds:
            why = f"the budget of {budget} is spent"
        self._on_message(f"{after} {why}{hope}")

    def report_missing(self) -> None:
        """Report what an answer lacks if not even the rounds of an opening fitted."""
        if math.isinf(self._limit.seconds):
            return
        titles = {task.first.title for task in self._planned}
        rounds: dict[int, list[Record]] = {}
        for record in self.records:
            if record.outcome.status == "ok":
                rounds.setdefault(record.round, []).append(record)
        whole = [each for each in rounds.values() if len(each) >= len(titles)]
        failed = {record.outcome.status for record in self.records} & {"failed", "diverged"}
        if failed or len(whole) >= OPENING_ROUNDS:
            return
        name = self._limit.name
        measured = {self._title(record) for each in rounds.values() for record in each}
        if not measured:
            self._on_message(f"{name} ended before any side was measured; increase --budget")
            return
        text = f"{name} was too short for {OPENING_ROUNDS} rounds, so there is no verdict"
        late = sorted(titles - measured)
        if late:
            self._on_message(f"{text}: nothing was measured of {', '.join(late)}")
            return
        needed = self._passed + self._seconds_of_missing(whole)
        self._on_message(f"{text}; they take about {seconds(needed)}: --budget {_rounded(needed)}")

    def _seconds_of_missing(self, whole: Sequence[Sequence[Record]]) -> float:
        """Return how long the missing rounds of an opening would take, from what was measured."""
        starts = _start_seconds(self.records)
        slices = {self._title(record): record.slices for record in self.records if record.slices}
        one_of_each = (_seconds([each]) / len(each) for each in slices.values())
        blocks = 2 * math.fsum(one_of_each) * OPENING_BLOCKS
        processes = [record.process.seconds or 0.0 for record in self.records if record.process]
        each_round = starts + blocks if slices else math.fsum(processes) / max(len(whole), 1)
        return each_round * (OPENING_ROUNDS - len(whole))

    def _next_round(
        self, records: Sequence[Record], number: int, left: float
    ) -> list[Task[AnyRun]]:
        """Return another round of the sides that have these records and are not decided."""
        blocks = _blocks(records, left) or _first_blocks(self._planned)
        observed = all(record.observed for record in records)
        titles = {self._title(record) for record in records} - self._decided
        tasks = _round(self._planned, number, blocks, observed=observed)
        return [task for task in tasks if task.first.title in titles]

    def _comparable(self) -> list[Record]:
        """Return the records of the sides that continue.

        A side continues if none of its runs failed and its subject has another such side.
        """
        failed = {self._title(record) for record in self.records if record.outcome.status != "ok"}
        going: set[str] = set()
        for _, tasks in parties(self._planned):
            titles = {task.first.title for task in tasks}
            left = titles - failed
            if len(left) >= min(len(titles), 2):
                going |= left
        return [record for record in self.records if self._title(record) in going]

    def _title(self, record: Record) -> str:
        """Return the title of the side that a record belongs to."""
        return self._titles[RunKey.of(record).of_side]

    @property
    def _all_are_decided(self) -> bool:
        """Whether the speed of every side is decided."""
        return all(task.first.title in self._decided for task in self._planned)

    def _decide(self, records: Sequence[Record]) -> bool:
        """Mark the sides whose speed these records decide, for good.

        Returns:
            Whether they decide every side.
        """
        decided_now = {self._title(record) for record in decided(records, self._budget.margin)}
        self._decided |= decided_now
        return decided_now == {self._title(record) for record in records}


def _openings(planned: Sequence[Task[AnyRun]]) -> list[list[Task[AnyRun]]]:
    """Return the tasks of the first two rounds of each subject that has an opening.

    These are trainings and observed commands with several sides. A subject with one planned round
    gets a second one of slices alone.
    """
    subjects: list[tuple[object, list[Task[AnyRun]]]] = []
    for subject, tasks in parties(planned):
        known = next((found for each, found in subjects if each == subject), None)
        if known is None:
            subjects.append((subject, list(tasks)))
        else:
            known.extend(tasks)
    openings = (_opening_of(tasks) for _, tasks in subjects)
    return [tasks for tasks in openings if tasks]


def _opening_of(tasks: Sequence[Task[AnyRun]]) -> list[Task[AnyRun]]:
    """Return the tasks of the opening of one subject; empty if it has none."""
    run: Run | CommandRun = tasks[0].first
    is_observed_command = isinstance(run, CommandRun) and run.blocks is not None and run.of.inject
    is_training = isinstance(run, Run) and run.blocks is None and len(tasks[0].runs) == 1
    sides = {task.first.title for task in tasks}
    if len(sides) < 2 or not (is_observed_command or is_training):
        return []
    first = min(task.round for task in tasks)
    rounds = [task for task in tasks if task.round < first + OPENING_ROUNDS]
    if all(task.round == first for task in rounds):
        rounds += _round(tasks, first + 1, _first_blocks(tasks))
    return rounds


def decided(records: Sequence[Record], margin: float) -> list[Record]:
    """Return the records of the groups whose comparisons are all decided.

    A comparison is decided if it has a verdict by the interval of a look, and the same by the
    interval that will be printed. Runs without slices are compared by one interval of 95 %, which
    is too narrow to be looked at several times.

    Args:
        records: records of any workloads.
        margin: what still counts as the same speed, a fraction.
    """
    look = compare(records, margin=margin, confidence=LOOK_CONFIDENCE)
    printed = compare(records, margin=margin)
    open_keys: set[Key] = set()
    for position, (early, late) in enumerate(zip(look.groups, printed.groups, strict=True)):
        if early.reference is None or look.is_reference(position):
            continue
        if not _is_decided(early, late):
            open_keys |= {early.key, look.groups[early.reference].key}
    for positions in printed.by_workload:
        open_keys |= _open_answer(look, printed, positions)
    found: list[Record] = []
    for group in printed.measured:
        if group.key not in open_keys:
            found += group.records
    return found


def _open_answer(look: Comparison, printed: Comparison, positions: Sequence[int]) -> set[Key]:
    """Return the two groups that answer the user's question, if that is still open."""
    early = answering_pair(look, positions, LOOK_CONFIDENCE)
    late = answering_pair(printed, positions)
    if early is None or late is None:
        return set()
    is_same_pair = [group.key for group in early] == [group.key for group in late]
    if is_same_pair and _is_decided(early[0], late[0]):
        return set()
    return {group.key for group in (*early, *late)}


def _is_decided(look: GroupResult, printed: GroupResult) -> bool:
    """Whether a comparison by slices has the same verdict by both intervals."""
    same_verdict = look.speedup.verdict == printed.speedup.verdict != "unclear"
    return look.speedup.of == "slice" and same_verdict


def warn_if_busy(neighbours: Neighbours, run: AnyRun, on_message: Callable[[str], None]) -> None:
    """Report how much of the machine others use, and what would help."""
    load = neighbours.load()
    cores = len(usable_core_numbers())
    if not load.is_high:
        return
    free = max(int(cores * (1 - load.taken)), 1)
    fewer = isinstance(run, Run) and free < (run.settings.threads or cores)
    named = _named(neighbours, "uses")
    taken = f"{percent(load.taken, 0)} of the CPU is in use by others"
    facts = [f"{taken} ({named})" if named else taken]
    if load.stolen > EXTERNAL_SHARE:
        facts.append(f"the host of this virtual machine takes {percent(load.stolen, 0)}")
    if load.waiting is not None and load.waiting > EXTERNAL_SHARE:
        facts.append(f"processes wait for a core {percent(load.waiting, 0)} of the time")
    if fewer and load.taken < MOST_LOAD:
        facts.append(f"--threads {free} would be steadier")
    else:
        facts.append("stop other programs, or measure later")
    on_message(f"note: {'; '.join(facts)}")


def _all_ok(records: Iterable[Record]) -> bool:
    return all(record.outcome.status == "ok" for record in records)


def _slices_by_block(records: Iterable[Record]) -> dict[tuple[str, int, int], list[Slice]]:
    """Return the slices of all sides, by workload, round and block."""
    found: dict[tuple[str, int, int], list[Slice]] = {}
    for record in records:
        for each in record.slices:
            found.setdefault((record.workload.name, record.round, each.block), []).append(each)
    return found


def _warn_of_disturbance(
    records: Iterable[Record],
    neighbours: Neighbours,
    on_message: Callable[[str], None],
    above: float = 0.0,
) -> None:
    """Report how many blocks others disturbed, and who, if their share is ``above`` this."""
    blocks = _slices_by_block(records)
    disturbed = sum(map(are_disturbed, blocks.values()))
    if disturbed <= above * len(blocks):
        return
    named = _named(neighbours, "used")
    named = named or "processes that have ended, or that can't be seen from here"
    on_message(f"other processes disturbed {disturbed} of {many(len(blocks), 'block')}: {named}")


def _named(neighbours: Neighbours, verb: str) -> str:
    return ", ".join(
        f"{each.name} (pid {each.pid}) {verb} {percent(each.cores, 0)} of a core"
        for each in neighbours.busiest()
    )


def _comparisons(records: Sequence[Record]) -> list[SliceComparison]:
    """Compare every side with the first one of its workload."""
    comparison = compare(records)
    measured = comparison.measured
    found: list[SliceComparison] = []
    for position, group in enumerate(comparison.groups):
        if group.reference is None or group.reference == position:
            continue
        sliced = compare_slices(measured[group.reference].records, measured[position].records)
        if sliced is not None:
            found.append(sliced)
    return found


def _spread(records: Sequence[Record]) -> float | None:
    """Return the largest standard deviation of a log ratio between rounds, if there are enough."""
    kept = (sliced.kept for sliced in _comparisons(records))
    known = [ratios for ratios in kept if len(ratios) >= FEWEST_FOR_INTERVAL]
    return max(map(statistics.stdev, known), default=None)


def _blocks(records: Sequence[Record], left: float) -> int | None:
    """Return the best number of blocks of a round; None if there are too few to tell.

    The side that needs most blocks decides.

    Args:
        records: the records so far.
        left: seconds left of the budget.
    """
    rounds = {record.round for record in records}
    starts = statistics.fmean(
        _start_seconds([each for each in records if each.round == of]) for of in rounds
    )
    blocks = _slices_by_block(records)
    block_seconds = _seconds(blocks.values()) / max(len(blocks), 1)
    fewest = FEWEST_BLOCKS
    if starts >= SLOW_START_SECONDS and block_seconds:
        worthwhile = math.ceil(LEAST_SLICES_SECONDS / block_seconds)
        fitting = int((left - starts) / block_seconds)
        fewest = max(fewest, min(worthwhile, fitting))
    spreads = (deviations(sliced.ratios) for sliced in _comparisons(records))
    needed = [
        blocks_that_pay(spread, starts, block_seconds, len(rounds), left, fewest)
        for spread in spreads
        if spread is not None
    ]
    return max(needed, default=None)


def _start_seconds(of_a_round: Sequence[Record]) -> float:
    """Return the seconds until all processes of a round are ready.

    They start at the same time, and compile one after the other.
    """
    slowest = max(each.setup_seconds or 0.0 for each in of_a_round)
    return slowest + sum(each.compile_seconds or 0.0 for each in of_a_round)


def _training_seconds(run: Run | CommandRun, record: Record) -> float | None:
    """Return the seconds of a whole training, without evaluations, from its slices.

    The result is None if its length is not known, as that of a command.
    """
    steps = sum(each.timed_steps for each in record.slices)
    if isinstance(run, CommandRun) or not steps:
        return None
    workload = run.scheduled.workload
    if workload.schedule.until is not None:
        return None
    examples = run.scheduled.dataset.train_examples
    whole = sum(map(len, epoch_sizes(workload.schedule, workload.batches, examples)))
    return whole * math.fsum(each.seconds for each in record.slices) / steps


def _rounded(needed: float) -> int:
    """Round seconds up to the next ten."""
    return 10 * math.ceil(needed / 10)


def _seconds(blocks: Iterable[Sequence[Slice]]) -> float:
    """Return the duration of these blocks, with the steps that were not timed."""
    slices = itertools.chain.from_iterable(blocks)
    return sum(each.seconds * each.steps / each.timed_steps for each in slices)


def _round(
    planned: Sequence[Task[AnyRun]], number: int, blocks: int, *, observed: bool = False
) -> list[Task[AnyRun]]:
    """Return one more round of every side.

    A training, or an ``observed`` command, has slices alone.
    """
    last = max(task.round for task in planned)
    repeated: list[Task[Any]] = [task.in_round(number) for task in planned if task.round == last]
    return [
        slices_alone(each, blocks) if observed or isinstance(each.first, Run) else each
        for each in repeated
    ]


def slices_alone(task: Task[AnyRun], blocks: int | None = None) -> Task[AnyRun]:
    """Return the task without a training to the end."""
    blocks = blocks or _first_blocks([task])
    return Task(tuple(dataclasses.replace(run, blocks=blocks) for run in task.runs))


def _in_equal_steps(tasks: Sequence[Task[AnyRun]], records: Sequence[Record]) -> list[Task[AnyRun]]:
    """Return the tasks, whose slices have equal numbers of steps if these records' steps grow."""
    rate = steps_a_second(records)
    if rate is None:
        return list(tasks)
    found: list[Task[Any]] = []
    for task in tasks:
        runs = task.runs
        if isinstance(task.first, CommandRun):
            runs = tuple(dataclasses.replace(run, steps_a_second=rate) for run in task.runs)
        found.append(Task(runs, task.done))
    return found


def _first_blocks(tasks: Iterable[Task[Any]]) -> int:
    """Return the number of blocks of a first round; a command counts as one on the CPU."""
    runs = (task.first for task in tasks)
    on_gpu = any(isinstance(run, Run) and run.side.device != "cpu" for run in runs)
    return GPU_BLOCKS if on_gpu else BLOCKS
