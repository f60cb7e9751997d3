"""Experiments on a user's script: the same training with one change each, against the original.

All of them are alive at the same time and take turns. What wins is measured again in fresh rounds
with fresh processes, since the best of twenty looks better than it is; then what wins again is
combined.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import secrets
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from trainmark.analysis.causes import Evidence, Found, find
from trainmark.analysis.changes import (
    SAMPLED,
    SMALLEST_GAIN,
    Curve,
    Finding,
    candidates,
    compare_losses,
    ranked,
    sampled,
    speedup,
)
from trainmark.analysis.experiments import (
    EXPERIMENTS,
    NOT_ENOUGH_TIME,
    Kind,
    ScriptPart,
    experiment,
)
from trainmark.analysis.modules import ModuleTime
from trainmark.analysis.slices import are_growing, steps_a_second
from trainmark.analysis.statistics import Estimate
from trainmark.analysis.work import of_steps
from trainmark.errors import ExplanationFailed, UnknownName
from trainmark.execute.parent.command import Command, CommandRun, CommandSide
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.scheduler import RunObserver, RunStopped
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.execute.parent.turns import SLICE_SECONDS
from trainmark.execute.protocol.answers import Answer, StepsObserved
from trainmark.inject.changes import OLD_VALUES_AT
from trainmark.inject.changes import VARIABLE as CHANGES
from trainmark.inject.one_at_a_time import VARIABLE as STARTS
from trainmark.measure.host import usable_core_numbers
from trainmark.measure.vendor import Gpu
from trainmark.record.caveats import Caveat
from trainmark.record.growth import Growth, growing_line, growth_of, memory_growth_of
from trainmark.record.last_words import last_words
from trainmark.record.observed import LOSS_DID_NOT_FALL, Observed
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.scratch import scratch_folder
from trainmark.study.explain.applicable import choose, why_rare
from trainmark.study.explain.experiment_host import ExperimentHost
from trainmark.study.explain.first_tries import seconds_of, switchable, worth_a_process
from trainmark.study.explain.patch.script import Source
from trainmark.study.explain.statements import line_of_growth, lines_around, texts_of
from trainmark.study.observer import OnProgress
from trainmark.units import many
from trainmark.units import seconds as in_words

SECONDS = 120.0
"""Default duration of all experiments, in seconds."""
UNCHANGED = ""
"""Name of the unchanged script among the changes."""
_FIRST_SHARE = 0.1
"""Share of the time in which steps of the unchanged script are observed first."""
_FIRST_SECONDS = 3.0
"""Seconds of steps after which this observation ends if the script has evaluated."""
_FIRST_SECONDS_AT_MOST = 8.0
"""Seconds of steps after which it ends in any case."""
_TRIALS_SHARE = 0.25
"""Largest share of the remaining time for trials within one process."""
_LATE_START = 2.0
"""Time that this process may take to start, as a multiple of the usual one."""
_SILENCE = 0.2
"""Share of the time without a report after which the unchanged script counts as hanging."""
_SCREENING = 0.6
"""Share of the time until the winners are known."""
_SCREENING_AT_MOST = 0.75
"""Share of the time at which the screening is ended, whatever still runs."""
_PATIENCE = 3.0
"""How long the others wait for a side that starts or computes, as a multiple of what is usual."""
_LEAST_PATIENCE_SECONDS = 3.0
"""Least seconds that they wait, since a busy machine stops a process now and then."""
_MOST_PATIENCE = 0.4
"""Largest share of the time left that they wait, unless it is usual to take longer."""
_FEWEST_BLOCKS = 4
"""Number of blocks that a round is planned with at least."""
_FEWEST_BLOCKS_LATE = 2
"""The same for a fresh round if there is no time for more."""
_MOST_BLOCKS = 12
"""Maximum number of blocks of a round; the time that is left goes to more rounds."""
_ROUNDS = 3
"""Number of fresh rounds of what won that are planned."""
_FEWEST_FRESH = 2
"""Fresh rounds without which a winner is not confirmed."""
_LIKELY_SIDES = 4
"""Sides of a fresh round for which the screening leaves time."""
_WINNERS = 3
"""Maximum number of winners that are measured again and combined."""
_SLOWER_TOGETHER = 1.5
"""How many times longer a process takes to start next to others: cores may share their parts."""
_MEMORY_SHARE = 0.7
"""Share of the free memory that all processes together may take."""
_LEAST_OF_LINES = 0.05
"""Share of the time from which a statement in the user's own code is worth naming."""
_OF_READS = 0.1
"""Share of such a statement's time from which reading results explains it.

The loop around the reads takes the rest.
"""

_READS_MAY_TAKE = 1.25
"""Time that reads may take, as a multiple of what was measured from samples of them."""
_LONGEST_ERROR = 200
"""Most characters of a script's error."""
_PATCHED = "it is written in the source"
"""Proof of a change that a patch makes."""
_ALL_BUT_NOTHING = 0.99
"""Largest share of the time that may be due to reads."""


@dataclass(frozen=True)
class OwnScript:
    """What is known of a user's script.

    Args:
        command: its name.
        observed: what the unchanged script does.
        lines: share of the time of each line of the user's, the largest first.
        texts: source of these lines, as far as it can be read.
        inside: share of the time of each function of a library that the slowest line calls.
        grows: by how much each step takes longer than the one before; None if they don't.
        grows_at: the line that most of this is due to; None if there is no such line.
        memory_grows: by how much the memory of the ``process`` and of the ``device`` grow with each
            step, in bytes; empty if they don't.
        parts: share of the time of each part of a step, the largest first; empty if they were not
            sampled.
        samples: number of samples that shares of lines and parts come from.
        workers: number of worker processes that the loader has; None if there is no loader.
        gpu_busy: share of a few steps in which the GPU computes; None without one.
        gpu_modules: its time by module in a further step, the largest share first; empty if
            unknown.
        step_seconds: duration of a step of the unchanged script, next to others that wait.
        causes: known causes of slow steps of which there is evidence.
        findings: what each change gives, those to name first at the top.
        stack: the first of several changes that are worth it together, then with the second one,
            and so on; empty if fewer than two are worth it.
        left_out: why changes were not tried, or failed.
        unsuitable: why other changes don't apply to this script.
        seconds: how long it took.
        interrupted: whether it was, so that less was measured.
        is_busy: whether other programs used the machine while the unchanged script ran alone.
        patch: the changes of the stack, or the first one, as a unified diff, which was measured as
            one; empty if none was asked for, or none wins.
        unwritten: changes that may win, but can't be written in one place.
    """

    command: str
    observed: Observed
    lines: Mapping[str, float]
    texts: Mapping[str, str]
    inside: Mapping[str, float]
    grows: Growth | None
    grows_at: str | None
    memory_grows: Mapping[str, Growth]
    parts: Mapping[str, float]
    samples: int
    workers: int | None
    gpu_busy: float | None
    gpu_modules: tuple[ModuleTime, ...]
    step_seconds: float
    causes: tuple[Found, ...]
    findings: tuple[Finding, ...]
    stack: tuple[Finding, ...]
    left_out: Mapping[str, str]
    unsuitable: Mapping[str, str]
    seconds: float
    interrupted: bool
    is_busy: bool
    patch: str = ""
    unwritten: tuple[str, ...] = ()


def explain(
    command: Command,
    settings: Settings,
    on_progress: OnProgress,
    seconds: float = SECONDS,
    only: Sequence[str] = (),
    host: ExperimentHost | None = None,
    limit: TimeLimit | None = None,
    *,
    patches: bool = False,
) -> OwnScript:
    """Try changes to the script of ``command`` for at most ``seconds``.

    Args:
        on_progress: called with the current step and the share done.
        only: known names of the changes to try; all that apply by default.
        host: where the script runs; by default this machine.
        limit: when everything ends, if that is not ``seconds`` from now.
        patches: write the changes that win into the source, and measure them as a patch; this needs
            LibCST.

    Raises:
        ExplanationFailed: the unchanged script failed, or made no steps that can be seen.
        KeyboardInterrupt: interrupted before the unchanged script made two steps; later, Ctrl-C
            only ends the measurements.
    """
    with scratch_folder() as folder:
        command = dataclasses.replace(command, inject=True, scratch=True, most_steps=None)
        host = host or ExperimentHost()
        limit = limit or time_limit(seconds, host.now(), host)
        study = _Study(command, settings, Store(Path(folder)), on_progress, limit, host, patches)
        return study.explain(only)


def time_limit(seconds: float, began: float, host: ExperimentHost | None = None) -> TimeLimit:
    """Return the limit of a study that began at this reading of the clock of ``host``."""
    host = host or ExperimentHost()
    return TimeLimit(seconds, began, f"--seconds {seconds:g}", clock=host.now)


def require_changes(names: Sequence[str]) -> None:
    """Raise :class:`~trainmark.errors.UnknownName` if there is no change of one of these names."""
    for name in names:
        if name.partition("=")[0] not in EXPERIMENTS or name.endswith("="):
            raise UnknownName("change", name, EXPERIMENTS)


def located(cause: Found, folder: Path) -> Found:
    """Return a cause with the line where its variable grows, if the source shows it."""
    variable = cause.variable
    if variable is None:
        return cause
    place = line_of_growth(variable.function, variable.name, folder)
    return dataclasses.replace(cause, place=place)


_STARTS = "starts"
"""File that is locked by the process that computes its first step."""


@dataclass
class _Study:
    command: Command
    settings: Settings
    store: Store
    on_progress: OnProgress
    limit: TimeLimit
    host: ExperimentHost
    writes_patches: bool = False
    step_seconds: float = 0.0
    start_a_side: float = 0.0
    records: dict[str, list[Record]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    unsuitable: dict[str, str] = field(default_factory=dict)
    rounds: Iterator[int] = field(default_factory=partial(itertools.count, 1))
    screened: dict[str, int] = field(default_factory=dict)
    session: str = field(default_factory=partial(secrets.token_hex, 6))
    interrupted: bool = False
    findings: dict[str, Finding] = field(default_factory=dict)
    stacks: list[str] = field(default_factory=list)
    patches: dict[str, Source] = field(default_factory=dict)
    unwritten: list[str] = field(default_factory=list)
    bounded: set[str] = field(default_factory=set)
    fewest_blocks: int = _FEWEST_BLOCKS

    def __post_init__(self) -> None:
        (self.store.folder / _STARTS).touch()
        self.screening_ends = _SCREENING_AT_MOST * self.seconds

    @property
    def seconds(self) -> float:
        """The time for everything."""
        return self.limit.seconds

    @property
    def passed(self) -> float:
        return self.limit.passed

    def explain(self, only: Sequence[str]) -> OwnScript:
        self.observed, self.facts = self._watch_unchanged()
        folder = self.command.directory
        texts = texts_of(self.facts.get("lines", {}), folder)
        logical = len(usable_core_numbers())
        physical = min(logical, psutil.cpu_count(logical=False) or logical)
        evidence = Evidence(self.observed, self.facts, logical, physical, texts)
        causes = [located(cause, folder) for cause in find(evidence)]
        # Where the source shows no line that adds to a variable, another one may have grown.
        self.causes = [each for each in causes if each.variable is None or each.place is not None]
        try:
            self._experiment(only)
        except KeyboardInterrupt:
            self.interrupted = True
        return self._conclude()

    def _experiment(self, only: Sequence[str]) -> None:
        """Measure the changes that apply, then again what may win."""
        chosen = choose(self.observed, self.facts, self.seconds, only, self.causes)
        planned, self.left_out, self.unsuitable = chosen
        if not only:
            planned = self._try_in_one_process(planned)
        self.findings = self._screen(self._that_fit(planned, whole=bool(only)))
        self._use_time_left(planned)
        if not only:
            self.findings |= self._of_causes()
        slowest = self._of_lines()
        if slowest is not None and (not only or slowest.change in only):
            known = self.findings.setdefault(slowest.change, slowest)
            self.findings[slowest.change] = max(known, slowest, key=attrgetter("speedup.value"))
        self._measure_again(candidates(self.findings.values()))

    def _conclude(self) -> OwnScript:
        """Return what is known of the script from everything that was measured."""
        findings = self.findings
        facts = self.facts
        for name in dict.fromkeys([*findings, *self.stacks]):
            measured_again = self._finding(name, fresh=True)
            if measured_again is not None:
                findings[name] = measured_again
            elif name in self.left_out:  # it failed in the fresh rounds
                findings.pop(name, None)
        stack = self._stack()
        for name in self.stacks[1:]:
            findings.pop(name, None)
        slices = itertools.chain.from_iterable(run.slices for run in self.records[UNCHANGED])
        of_slices = [each.seconds / each.timed_steps for each in slices]
        self.step_seconds = statistics.median(of_slices or [self.step_seconds])
        every = tuple(ranked(findings.values()))
        grows, grows_at = self._growth()
        self.on_progress("done", 1.0)
        return OwnScript(
            command=self.command.name,
            observed=self.observed,
            lines=facts.get("lines", {}),
            texts=texts_of(facts.get("lines", {}), self.command.directory),
            inside=facts.get("inside", {}),
            grows=grows,
            grows_at=grows_at,
            memory_grows=memory_growth_of(self._longest()),
            parts={} if self.observed.on_gpu else facts.get("parts", {}),
            samples=facts.get("samples", 0),
            workers=facts.get("workers"),
            gpu_busy=facts.get("busy"),
            gpu_modules=tuple(ModuleTime(*each) for each in facts.get("modules", ())),
            step_seconds=self.step_seconds,
            causes=tuple(self.causes),
            findings=every,
            stack=stack,
            left_out=self.left_out,
            unsuitable=self.unsuitable,
            seconds=self.passed,
            interrupted=self.interrupted,
            is_busy=self._is_busy,
            patch=self._patch(stack),
            unwritten=tuple(self.unwritten),
        )

    @property
    def _is_busy(self) -> bool:
        """Whether other programs used the machine while the unchanged script ran alone.

        In rounds, the other sides and those of the round before can't be told from them.
        """
        return Caveat.BUSY_MACHINE in self.base.caveats

    def _patch(self, stack: Sequence[Finding]) -> str:
        """Return the patch that won; empty if there is none."""
        best = stack[-1] if stack else self.findings.get(next(iter(self.stacks), ""))
        if best is None or not (best.fresh and best.can_be_made):
            return ""
        source = self.patches.get(best.change)
        return source.diff() if source is not None else ""

    def _stack(self) -> tuple[Finding, ...]:
        """Return the changes that are worth it together, while each certainly adds something."""
        stack: list[Finding] = []
        for name in self.stacks:
            found = self.findings.get(name)
            if found is None or not (found.fresh and found.wins) or found.harms:
                break
            if stack and not self._adds(stack[-1].change, name):
                break
            stack.append(found)
        return tuple(stack) if len(stack) > 1 else ()

    def _adds(self, before: str, after: str) -> bool:
        """Whether a stack is certainly faster than without its last change, and worth it."""
        sides = (_in_turns(self._records_of(name, fresh=True)) for name in (before, after))
        added = speedup(*sides)
        if added is None or added.value < SMALLEST_GAIN:
            return False
        return added.low is not None and added.low > 1

    def _growth(self) -> tuple[Growth | None, str | None]:
        """Return the growth in the longest run of the unchanged script, and its line if known.

        Lines were sampled in the first run alone.
        """
        found = growth_of(self._longest())
        sampled = growth_of(self.observed)
        if found is None or sampled is None:
            return found, None
        early = self.facts.get("early", {})
        return found, growing_line(sampled, early, self.facts.get("late", {}))

    def _longest(self) -> Observed:
        """Return what was observed in the longest run of the unchanged script."""
        runs = [self.observed, *(run.observed for run in self.records[UNCHANGED] if run.observed)]
        return max(runs, key=attrgetter("steps"))

    # The unchanged script

    def _watch_unchanged(self) -> tuple[Observed, dict[str, Any]]:
        most = min(_FIRST_SHARE * self.seconds, _FIRST_SECONDS_AT_MOST)
        silence = _SILENCE * self.seconds
        what = "the unchanged script"
        watch = _StepWatch(self.report_time, self.host, what, most, silence, _FIRST_SECONDS)
        try:
            self.host.run([self._task("facts", None, 0)], self.store, watch, self.limit)
        except KeyboardInterrupt:
            self.interrupted = True
        seen = watch.records[0].observed if watch.records else None
        if self.interrupted and (seen is None or seen.steps < 2):
            raise KeyboardInterrupt
        record = watch.records[0]
        why = None if self._is_cut(record) else _why(record)
        if seen is None or seen.steps < 2 or why is not None:
            steps = many(0 if seen is None else seen.steps, "training step")
            raise ExplanationFailed(
                f"{self.command.name} can't be explained",
                expected="a Python script that trains at least two steps with PyTorch, Keras or "
                "JAX, and doesn't fail",
                found=why or f"{steps} in {in_words(self.passed)}",
                fix=self._more_time(watch) if why is None else "",
            )
        self.base = record
        self.start_seconds = watch.start_seconds
        self.start_a_side = _SLOWER_TOGETHER * self.start_seconds / _starting_together()
        self.step_seconds = seen.seconds / (seen.steps - 1)
        self.records[UNCHANGED] = []
        return seen, json.loads(seen.changed.get("facts", "{}"))

    def _is_cut(self, record: Record) -> bool:
        """Whether the time limit has ended a process."""
        return record.outcome.reason == self.limit.reason

    def _more_time(self, watch: _StepWatch) -> str:
        """Return how many seconds a script needs that had no time for two steps, if known."""
        if not watch.has_stepped and not self._is_cut(watch.records[0]):
            return "It has ended by itself; docs/measure.md says what counts as a step."
        if not watch.has_stepped:
            return "Use a larger --seconds if it only starts slowly."
        # The unchanged script starts once alone, and once next to a change.
        starts = (1 + 2 / _starting_together()) * watch.start_seconds
        needed = math.ceil(starts / _SCREENING_AT_MOST / 10) * 10
        if needed <= self.seconds:
            return "It made no further step for the rest of the time; it may hang."
        start = in_words(watch.start_seconds)
        return f"Its first step comes after {start}, so use --seconds {needed} or more."

    # The experiments

    def _try_in_one_process(self, planned: list[str]) -> list[str]:
        """Try changes within one process if there is no time for a process for each.

        Returns those that are worth a process, the most promising first.
        """
        names = switchable(planned, self.observed, self.facts)
        each_once = seconds_of(names, self.step_seconds)
        most = _TRIALS_SHARE * (self.seconds - self.passed) - self.start_seconds
        too_many = self._screening_seconds(planned) > _SCREENING * self.seconds - self.passed
        is_cheaper = self.start_seconds + each_once < self._round_seconds(len(names))
        if not (names and too_many and is_cheaper) or each_once > most:
            return planned
        change = f"trials={';'.join(names)}"
        what = f"{many(len(names), 'change')} within one process"
        watch = _StepWatch(self.report_time, self.host, what, most, _SILENCE * self.seconds)
        limit = self.limit.at(self.passed + _LATE_START * self.start_seconds + most)
        try:
            self.host.run([self._task(change, None, 0)], self.store, watch, limit)
        except KeyboardInterrupt:
            self.interrupted = True
        seen = watch.records[0].observed if watch.records else None
        found = json.loads(seen.changed.get(change, "{}")) if seen is not None else {}
        planned, no_gain = worth_a_process(planned, found)
        self.left_out |= no_gain
        return planned

    def _screening_seconds(self, planned: Sequence[str]) -> float:
        """Return how long it takes to measure each change once."""
        # The unchanged script is in every party.
        sides = len(planned) * (1 + 1 / min(self._most_alive(), max(len(planned), 1)))
        return sides * self._round_seconds(1)

    def _that_fit(self, planned: list[str], *, whole: bool) -> list[str]:
        """Return the changes that there is time to screen; with ``whole``, all if one fits."""
        if not planned:
            return []
        each = self._screening_seconds(planned) / len(planned)
        number = max(int((_SCREENING * self.seconds - self.passed) / each), 0)
        if number and whole:
            return planned
        if not number and self._use_fewest_blocks():
            number = 1  # measured once, without fresh rounds
            self.screening_ends = self.seconds
        enough = (self.passed + each * len(planned)) / _SCREENING
        late = f"{NOT_ENOUGH_TIME}; use --seconds {math.ceil(enough / 10) * 10}"
        self.left_out |= dict.fromkeys(planned[number:], late)
        return planned[:number]

    def _use_fewest_blocks(self) -> bool:
        """Plan rounds of so few blocks that one fits; return whether one does."""
        for blocks in (_FEWEST_BLOCKS, _FEWEST_BLOCKS_LATE):
            self.fewest_blocks = blocks
            if self.passed + 2 * self._round_seconds(1, blocks) <= self.seconds:
                return True
        return False

    def _use_time_left(self, planned: Sequence[str]) -> None:
        """Screen more changes as long as there is time, and none has to be measured again."""
        late = [name for name in planned if name in self.left_out]
        late = [name for name in late if self.left_out[name].startswith(NOT_ENOUGH_TIME)]
        while late and not self.interrupted and not candidates(self.findings.values()):
            side = self._round_seconds(1)
            if self.passed + 2 * side > self.seconds:
                break
            each = side * (1 + 1 / min(self._most_alive(), len(late)))
            number = max(int(_SCREENING * (self.seconds - self.passed) / each), 1)
            self.screening_ends = self.seconds
            self.findings |= self._screen(late[:number])
            for name in self.findings.keys() & self.left_out.keys():
                del self.left_out[name]
            late = late[number:]

    def _start_seconds(self, sides: int) -> float:
        """Return the seconds until this many processes have started, as in the latest round."""
        return sides * self.start_a_side

    @property
    def _slice_seconds(self) -> float:
        return 1.1 * max(SLICE_SECONDS, 2 * self.step_seconds)

    def _screen(self, planned: Sequence[str]) -> dict[str, Finding]:
        """Measure every change once, in parties that fit into memory."""
        waiting = len(planned)
        for party in self._parties(planned):
            sides = [UNCHANGED, *party]
            starts = self._start_seconds(len(sides))
            if self.passed + starts >= self.screening_ends:
                break
            left = self._screening_planned - self.passed - starts
            blocks = self._blocks(left * len(party) / waiting, len(sides), self.fewest_blocks)
            self._round(sides, blocks, self.screening_ends)
            waiting -= len(party)
        found = {change: self._finding(change) for change in planned}
        return {change: finding for change, finding in found.items() if finding is not None}

    @property
    def _screening_planned(self) -> float:
        """When the screening ends, if all goes well: what wins then has to be measured again."""
        again = _FEWEST_FRESH * self._round_seconds(_LIKELY_SIDES)
        return min(_SCREENING * self.seconds, max(self.seconds - again, 0.0))

    def _round_seconds(self, sides: int, blocks: int = _FEWEST_BLOCKS) -> float:
        """Return the duration of a round of this many sides."""
        return self._start_seconds(sides) + 2 * blocks * sides * self._slice_seconds

    def _measure_again(self, winners: Sequence[Finding]) -> None:
        """Measure what may win in fresh rounds.

        Changes are stacked: the first one is measured alone, then together with the second one, and
        so on, since one bottleneck hides the next. Diagnoses are stacked, too; the user has to
        write their cures.
        """
        valid = list[str]()
        for each in winners:
            if each.harms or not self._can_be_stacked(each):
                continue
            if not any(_exclude(each.change, other) for other in valid):
                valid.append(each.change)
        if self.writes_patches:
            valid = self._written(valid)
        single = [each.change for each in winners if each.proof != SAMPLED]
        self.screened = {name: len(records) for name, records in self.records.items()}
        if not single:
            return
        for plan in _again(single, valid):
            parties = self._parties(plan.changes)
            sides = sum(len(party) + 1 for party in parties)
            needed = self._round_seconds(sides, plan.blocks)
            if self.passed + plan.rounds * needed < self.seconds:
                break
        self.stacks = plan.stacks
        each_round = (self.seconds - self.passed) / _ROUNDS
        blocks = self._blocks(each_round - self._start_seconds(sides), sides, plan.blocks)
        longest = needed
        while not self.interrupted and self.passed + longest <= self.seconds:
            began = self.passed
            for party in parties:
                self._round([UNCHANGED, *party], blocks, self.seconds)
            longest = max(longest, self.passed - began)

    def _can_be_stacked(self, found: Finding) -> bool:
        """Whether a change or a diagnosis can be part of a stack.

        A patch has no diagnoses, since the user has to write their cures. A gain that is capped by
        the time of reads can't be capped within a stack.
        """
        if found.kind == "diagnosis":
            is_tried = found.proof != SAMPLED and found.change not in self.bounded
            return is_tried and not self.writes_patches
        return found.kind == "change"

    def _written(self, valid: Sequence[str]) -> list[str]:
        """Return the changes that can be written into the source, and keep the patches."""
        from trainmark.study.explain.patch.writers import Script, write

        about = {each.change: each for each in self.findings.values()}
        script = Script(
            self._main_file(), self.observed, {name: _places(about[name]) for name in valid}
        )
        source = Source(self.command.directory)
        kept: list[str] = []
        for change in valid:
            try:
                changed = write(source, script, change)
            except Exception:  # noqa: BLE001  (a patch must not cost what was measured)
                changed = None
            if changed is None:
                self.unwritten.append(change)
                continue
            source = changed
            kept.append(change)
            self.patches["+".join(kept)] = source
        return kept

    def _main_file(self) -> str | None:
        """Return the file of Python that the command runs, if it is in the working folder."""
        folder = self.command.directory.resolve()
        words = (word for word in self.command.template if word.endswith(".py"))
        file = next((folder / word for word in words if (folder / word).is_file()), None)
        if file is None or not file.resolve().is_relative_to(folder):
            return None
        return str(file.resolve().relative_to(folder))

    def _finding(self, change: str, *, fresh: bool = False) -> Finding | None:
        """Return what is known of a change; None if it took no effect.

        Args:
            change: its name.
            fresh: use the fresh rounds alone.
        """
        records = self._records_of(change, fresh=fresh)
        unchanged = self._records_of(UNCHANGED, fresh=fresh)
        if fresh and len({record.round for record in records}) < _FEWEST_FRESH:
            return None
        seen = [each.observed for each in records if each.observed is not None]
        proofs: dict[str, str] = {}
        failed: dict[str, str] = {}
        for observed in seen:
            proofs |= observed.changed
            failed |= observed.failed
        why_not = [
            failed[part] for part in change.split("+") if part in failed and part not in proofs
        ]
        why_not += filter(None, map(_why, records))
        if fresh and change in self.patches:
            proofs |= dict.fromkeys(change.split("+"), _PATCHED)
        lacking = "no evidence that it took effect"
        if self.interrupted and (not records or _was_interrupted(records)):
            lacking = "interrupted"
        elif not records:
            lacking = f"{NOT_ENOUGH_TIME}; use a larger --seconds"
        why_not += [lacking for part in change.split("+") if part not in proofs]
        is_batch = change.startswith("batch")
        ratio = speedup(_in_turns(unchanged), _in_turns(records), per_example=is_batch)
        if not (is_batch or of_steps(unchanged, records).can_be_compared):
            why_not.append("a step then does another amount of work")
        elif ratio is None and are_growing([*unchanged, *records]):
            why_not.append("steps take longer and longer, and no equal numbers of them were timed")
        if why_not or ratio is None:
            why_not.append("it ended, or memory ran out, before it could be compared")
            self.left_out[change] = why_not[0]
            return None
        losses = [_losses(each) for each in [self.base, *self.records[UNCHANGED]]]
        steps = int(change.partition("=")[2]) / ratio.value if is_batch else 1
        curve: Curve = "unseen"
        if not self._is_learning_unseen:
            is_patch = fresh and change in self.patches  # not the experiment of the screening
            these = records if is_patch else self.records[change]
            curve = compare_losses(losses, [_losses(each) for each in these], steps)
        proof = "; ".join(proofs[part] for part in change.split("+"))
        memory = _memory_ratio(records, unchanged)
        if "+" in change:
            kinds = {experiment(part).kind for part in change.split("+")}
            kind: Kind = "diagnosis" if "diagnosis" in kinds else "change"
            learnt: Curve = "unseen" if kind == "diagnosis" else curve
            return Finding(change, kind, None, ratio, fresh, learnt, proof, None, memory)
        about = experiment(change)
        cause = next((each for each in self.causes if change in each.changes), None)
        place = (cause and cause.place) or self._place(about.part, proof)
        if change == "no-sync":
            why, ratio = self._of_reads(ratio, failed.get(change))
            if why:
                self.left_out[change] = why
                return None
        if not place and seen:
            place = seen[0].places.get(about.part)
        return Finding(
            change, about.kind, about.part, ratio, fresh, curve, proof, place, memory, cause
        )

    def _of_reads(self, ratio: Estimate, failed: str | None) -> tuple[str, Estimate]:
        """Return why ``no-sync`` is left out, empty if it isn't, and its speed-up.

        Args:
            ratio: what was measured.
            failed: why some reads were not left out; None if all were.
        """
        bounded = self._at_most_the_reads(ratio)
        if bounded is None:
            return "steps got shorter by more than reading takes", ratio
        if bounded != ratio:
            self.bounded.add("no-sync")
        if failed and (bounded.low is None or bounded.low <= 1):
            return f"{failed}; without the others, no gain was seen", bounded
        return "", bounded

    @property
    def _is_learning_unseen(self) -> bool:
        """Whether the losses need not fall, so that a higher one is no harm."""
        return self.observed.unknown.get("learning", LOSS_DID_NOT_FALL) != LOSS_DID_NOT_FALL

    def _records_of(self, change: str, *, fresh: bool) -> list[Record]:
        """Return the records of a change; with ``fresh``, without those of the screening."""
        records = self.records.get(change, [])
        return records[self.screened.get(change, 0) :] if fresh else records

    def _of_causes(self) -> dict[str, Finding]:
        """Return what known causes take, by samples, if no experiment has shown it."""
        number = self.facts.get("samples", 0)
        if self.observed.on_gpu or not number:  # the host may wait for what the GPU computes
            return {}
        return {
            cause.name: Finding(
                cause.name,
                "diagnosis",
                cause.part,
                sampled(cause.share, number),
                True,
                "unclear",
                SAMPLED,
                cause.place,
                None,
                cause,
            )
            for cause in self.causes
            if cause.share is not None and not any(name in self.findings for name in cause.changes)
        }

    def _of_lines(self) -> Finding | None:
        """Return what the slowest statement in the user's own code takes, by samples.

        The finding is called ``no-sync`` if this is due to reads.
        """
        seen = self.observed
        facts = self.facts
        reads = self._reads
        own: Mapping[str, float] = facts.get("own", {})
        number = facts.get("samples", 0)
        if seen.on_gpu:  # a line may wait for what the GPU computes
            return None
        evaluates = 0.0
        if why_rare(seen, seen.evaluations or 0, None):
            evaluates = facts.get("parts", {}).get("evaluation", 0.0)
        avoid = [*facts.get("stack", ()), *facts.get("loading", ()), *seen.places.values()]
        places = [place for place in own if place not in avoid]
        parts = [lines_around(place, self.command.directory, avoid) for place in places]

        def time_of(lines: Sequence[str]) -> float:
            return sum(own.get(line, 0.0) for line in lines)

        named = {cause.place for cause in self.causes} | {self._growth()[1]}
        unnamed = [lines for lines in parts if named.isdisjoint(lines)]
        best = max(unnamed, key=time_of, default=[])
        share = time_of(best) / max(1 - evaluates, 0.01)
        if share < _LEAST_OF_LINES:
            return None
        ratio = sampled(share, number)
        last = best[-1].rpartition(":")[2]
        place = best[0] if len(best) == 1 else f"{best[0]}-{last}"
        share_of_reads = sum(reads[each] for each in best) / max(reads.total(), 1)
        of_reads = share_of_reads * (seen.sync_seconds or 0.0)
        due = of_reads >= _OF_READS * share * seen.seconds and "no-sync" not in self.left_out
        name = "no-sync" if due else "line"
        return Finding(
            name, "diagnosis", experiment(name).part, ratio, True, "unclear", SAMPLED, place
        )

    @property
    def _reads(self) -> Counter[str]:
        """How often each line reads results."""
        reads = Counter[str]()
        for call, times in self.observed.syncs.items():
            reads[call.rpartition(" ")[0]] += times
        return reads

    def _at_most_the_reads(self, ratio: Estimate) -> Estimate | None:
        """Return a ratio that is no larger than the measured time of reading allows.

        It is None if the ratio is certainly larger, so that something else must have shortened the
        steps. Reads during an evaluation are a part of it, so all of that might be due to them.
        """
        seen = self.observed
        of_reads = (seen.sync_seconds or 0.0) + (seen.evaluation_seconds or 0.0)
        share = min(_READS_MAY_TAKE * of_reads / (seen.all_seconds or math.inf), _ALL_BUT_NOTHING)
        most = 1 / (1 - share)
        if ratio.low is not None and ratio.low > most:
            return None
        return Estimate(min(ratio.value, most), ratio.low, ratio.high and min(ratio.high, most))

    def _place(self, part: ScriptPart, proof: str) -> str | None:
        if part == "sync":
            # The script computes with what other lines read.
            stale = proof.removeprefix(OLD_VALUES_AT).split("; ")
            reads = {place: self._reads[place] for place in stale}
            loading = self.facts.get("loading", ())
            lines = self.facts.get("lines", {})
            often = self.observed.steps / 2

            def rank(place: str) -> tuple[bool, bool, float]:
                return place not in loading, reads[place] >= often, lines.get(place, 0.0)

            return max(reads, key=rank, default=None)
        return self.observed.places.get("model" if part == "precision" else part)

    # Processes

    def _most_alive(self) -> int:
        """Return how many changes fit into memory, next to the unchanged script."""
        needs = _resident_bytes(self.base)
        left = self.host.available_memory()
        most = _MEMORY_SHARE * left / needs if needs and left else 9
        if self.observed.on_gpu:
            needs, left = _gpu_bytes(self.base, self.host.gpus())  # a process may take most of it
            most = min(most, _MEMORY_SHARE * left / needs if needs else 1)
        return max(int(most) - 1, 1)

    def _parties(self, changes: Sequence[str]) -> list[Sequence[str]]:
        """Split changes into parties of about equal sizes; on a GPU, larger batches are alone."""
        alone: list[str] = []
        if self.observed.on_gpu:
            alone = [each for each in changes if "batch=" in each or "accumulation=" in each]
        others = [each for each in changes if each not in alone]
        number = -(-len(others) // self._most_alive())
        parties: list[Sequence[str]] = [others[index::number] for index in range(number)]
        return parties + [[each] for each in alone]

    def _blocks(self, seconds: float, sides: int, fewest: int) -> int:
        blocks = int(seconds / (2 * sides * self._slice_seconds))
        return min(max(blocks, fewest), _MOST_BLOCKS)

    def _round(self, changes: Sequence[str], blocks: int, ends: float) -> None:
        """Measure changes against the unchanged script, once.

        After Ctrl-C nothing follows; what it leaves of the screening counts, but not part of a
        fresh round.

        Args:
            blocks: number of blocks.
            ends: seconds after the beginning at which the round is ended.
        """
        if self.interrupted or self.limit.is_reached:
            return
        number = next(self.rounds)
        rate = steps_a_second([self.base, *itertools.chain.from_iterable(self.records.values())])
        tasks = [self._task(side, blocks, number, rate) for side in dict.fromkeys(changes)]
        what = f"{many(len(changes) - 1, 'change')} against the unchanged script"
        watch = _StepWatch(self.report_time, self.host, what)
        limit = self.limit.at(ends, self._patience(len(tasks)))
        began = self.passed
        try:
            self.host.run(tasks, self.store, watch, limit)
        except KeyboardInterrupt:
            self.interrupted = True
            if self.screened:
                return
        if not any(record.outcome.status == "timeout" for record in watch.records):
            slices = itertools.chain.from_iterable(record.slices for record in watch.records)
            measuring = math.fsum(each.seconds * each.steps / each.timed_steps for each in slices)
            self.start_a_side = max(self.passed - began - measuring, 0.0) / len(tasks)
        for record in watch.records:
            # The time was over before it had a result, which is no fault of the change. In a fresh
            # round, it has been measured before, so it only isn't confirmed.
            is_late = record.outcome.status == "timeout"
            if is_late and (self.screened or record.outcome.reason == limit.reason):
                continue
            found = re.match(r"change=(\S+)", record.backend.style or "")
            self.records.setdefault(found[1] if found else UNCHANGED, []).append(record)

    def _task(
        self, change: str, blocks: int | None, number: int, rate: float | None = None
    ) -> Task[CommandRun]:
        """Return a round of a change.

        Args:
            rate: how many steps stand for a second; None for slices of equal time.
        """
        patch = self.patches.get(change)
        environment = {
            CHANGES: "" if patch else change.replace("+", ","),
            STARTS: str(self.store.folder / _STARTS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WANDB_MODE": "disabled",
        }
        files = {} if patch is None else patch.edited
        side = CommandSide({"change": change} if change else {}, environment, files)
        run = CommandRun(
            self.command, side, self.settings, number, number, self.session, self.session, blocks
        )
        return Task((dataclasses.replace(run, steps_a_second=rate),))

    def _patience(self, sides: int) -> float:
        """Return how long the others wait for a side that starts or computes."""
        usual = max(self._start_seconds(sides), self.start_seconds, 4 * self.step_seconds)
        most = max(_MOST_PATIENCE * self.limit.left, usual)
        return min(max(_PATIENCE * usual, _LEAST_PATIENCE_SECONDS), most)

    def report_time(self, what: str) -> None:
        """Report what is being done, and the share of the time that has passed."""
        self.on_progress(what, min(self.passed / self.seconds, 0.99))


class _StepWatch(RunObserver):
    """Follows processes.

    Args:
        most: end the process after this many seconds of steps, or earlier if it has evaluated.
        silence: end it if nothing has been reported for this many seconds since its first step.
        enough: end it after this many seconds of steps if it has evaluated.
    """

    def __init__(
        self,
        on_progress: Callable[[str], None],
        host: ExperimentHost,
        what: str,
        most: float = math.inf,
        silence: float = math.inf,
        enough: float = math.inf,
    ) -> None:
        self._on_progress = on_progress
        self._host = host
        self._what = what
        self._most = most
        self._silence = silence
        self._enough = enough
        self._began = self._host.now()
        self._stepped_at: float | None = None
        self._reported_at = self._began
        self._seen: StepsObserved | None = None
        self.records: list[Record] = []

    @property
    def has_stepped(self) -> bool:
        """Whether the process has made a step."""
        return self._stepped_at is not None

    @property
    def start_seconds(self) -> float:
        """Seconds from the start of the process to its first step."""
        return (self._stepped_at or self._host.now()) - self._began

    def answered(self, task: Task[Any], answer: Answer) -> None:  # noqa: ARG002
        """Keep what was observed."""
        if isinstance(answer, StepsObserved):
            self._seen = answer
            self._reported_at = self._host.now()
            self._stepped_at = self._stepped_at or self._reported_at - answer.seconds

    def recorded(self, task: Task[Any], record: Record) -> None:  # noqa: ARG002
        """Keep the record, also of a run that is interrupted."""
        self.records.append(record)

    def counted(self, task: Task[Any], steps: int) -> None:  # noqa: ARG002
        """Show the time left, and end the first process after a few seconds of steps."""
        self._on_progress(self._what)
        silent = self._host.now() - self._reported_at > self._silence
        if self._most < math.inf and self._seen is not None:
            # Only what was reported is known of a process that is ended.
            reported = self._reported_at - self._began - self.start_seconds
            has_evaluated = reported > self._enough and bool(self._seen.evaluations)
            # Two steps are the least that tell anything.
            hangs = silent and self._seen.steps > 1
            if reported > self._most or has_evaluated or hangs:
                raise RunStopped("observed long enough")


class _Plan(NamedTuple):
    """What is measured in fresh rounds.

    Args:
        changes: the changes, alone and together.
        stacks: the first change that can be made, then with the second one, and so on.
        rounds: how many of them have to fit.
        blocks: the fewest blocks of each.
    """

    changes: list[str]
    stacks: list[str]
    rounds: int
    blocks: int = _FEWEST_BLOCKS


def _places(found: Finding) -> tuple[str, ...]:
    """Return the lines that a change is about."""
    further = found.cause.further if found.cause is not None else ()
    return tuple(filter(None, (found.place, *further)))


def _again(single: Sequence[str], valid: Sequence[str]) -> Iterator[_Plan]:
    """Yield plans for fresh rounds, those that measure most first.

    Args:
        single: changes that may win, the most promising first.
        valid: those of them that can be made together.
    """
    for most in range(_WINNERS, 0, -1):
        stacks = ["+".join(valid[:number]) for number in range(1, min(len(valid), most) + 1)]
        others = [change for change in single[:most] if change not in valid]
        every = dict.fromkeys([*others, *valid[:most], *stacks])
        yield _Plan(list(every), stacks, _ROUNDS)
        yield _Plan([*others, *stacks], stacks, _FEWEST_FRESH)
    yield _Plan([*others, *stacks], stacks, _FEWEST_FRESH, _FEWEST_BLOCKS_LATE)


def _in_turns(records: Sequence[Record]) -> list[Record]:
    """Return those that took turns with the others of their round.

    The others trained alone for lack of memory.
    """
    return [record for record in records if Caveat.ONE_AFTER_THE_OTHER not in record.caveats]


def _starting_together() -> int:
    """Return how many processes start at a time."""
    return min(len(usable_core_numbers()), 4)


def _was_interrupted(records: Sequence[Record]) -> bool:
    return any(record.outcome.status == "interrupted" for record in records)


def _exclude(one: str, other: str) -> bool:
    """Whether two changes exclude each other."""
    names = {change.partition("=")[0] for change in (one, other)}
    if "same-batch" in names:  # then nothing is left of loading
        return all(experiment(name).part == "loader" for name in names)
    return any(names <= alike for alike in _ALIKE)


_ALIKE = (
    {"fused", "foreach", "torch-optimizer"},
    {"bf16", "fp16"},
    {"threads"},
    {"workers", "prefetch", "no-workers"},
    {"persistent-workers", "no-workers"},
    {"compile", "cuda-graphs"},
)
"""Changes of which a training can have only one."""


def _memory_ratio(records: Sequence[Record], unchanged: Sequence[Record]) -> float | None:
    """Return the peak memory as a multiple of the unchanged script's; None if unknown."""
    these = list(filter(None, map(_peak_bytes, records)))
    those = list(filter(None, map(_peak_bytes, unchanged)))
    return statistics.median(these) / statistics.median(those) if these and those else None


def _peak_bytes(record: Record) -> int | None:
    """Return the peak memory of the accelerator, if the weights are on one, else of the host."""
    on_gpu = record.observed is not None and record.observed.on_gpu
    return record.memory.device_peak_bytes if on_gpu else _resident_bytes(record)


def _resident_bytes(record: Record) -> int | None:
    """Return the most resident memory of a process and its children, if it could be read."""
    sizes = (record.samples and record.samples.tree_resident_bytes) or ()
    return max(filter(None, sizes), default=None)


def _gpu_bytes(record: Record, gpus: Sequence[Gpu]) -> tuple[int, int]:
    """Return the GPU memory of a process, and what was free before it, on the fullest GPU.

    Both are 0 if unknown.
    """
    rows = (record.samples and record.samples.gpu_memory_bytes) or ()
    used = [[value or 0 for value in each] for each in zip(*rows, strict=False)]
    pairs = zip(used, gpus, strict=False)
    found = [(max(each) - min(each), (gpu.memory_bytes or 0) - each[0]) for each, gpu in pairs]
    grown = [(needed, free) for needed, free in found if needed > 0]
    return min(grown, key=lambda each: each[1] / each[0], default=(0, 0))


def _losses(record: Record) -> list[float]:
    return record.observed.losses if record.observed else []


def _why(record: Record) -> str | None:
    """Return why a process failed, with its error or its last line; None if it did not."""
    if record.outcome.status not in ("failed", "timeout"):
        return None
    error = last_words(record.outcome.stderr_tail)[:_LONGEST_ERROR]
    return ": ".join(filter(None, (record.outcome.reason, error)))
