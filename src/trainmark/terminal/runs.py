"""Progress of runs: a live line per process, and a permanent line per finished run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn
from rich.table import Column

from trainmark import units
from trainmark.analysis.summary import summarize
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.scheduler import RunObserver
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.execute.protocol.answers import (
    Answer,
    Compiled,
    EpochEnded,
    Evaluated,
    Ready,
    SliceTimed,
    Waiting,
)
from trainmark.masking import mask
from trainmark.measure.sampler import Row, tree_percent
from trainmark.record.facts import tokens_of
from trainmark.record.last_words import last_words
from trainmark.record.record import Record
from trainmark.report.labels import side_of
from trainmark.report.length import asks_for_steps, length
from trainmark.report.pace import pace
from trainmark.terminal.line import ProgressLine
from trainmark.terminal.time_left import (
    TaskTime,
    Throughput,
    TimeLeft,
    at_most_left,
    kind_of,
    whole_seconds,
)
from trainmark.workload.tokens import Tokens

_LONGEST_WORDS = 200
"""Maximum length of the last output of a command that failed, in characters."""


class RunProgress(ProgressLine, RunObserver):
    """Shows a live line per process, a line per finished run and, on Ctrl-C, what is kept.

    Args:
        folder: folder of the records.
        resumes: whether the command has a --resume.
        limit: when all runs end. With one, it is shown instead of an estimate, since the number of
            rounds is not known.
    """

    def __init__(
        self,
        screen: Console,
        tasks: Sequence[Task[Any]],
        folder: Path,
        *,
        resumes: bool = True,
        limit: TimeLimit = NO_LIMIT,
    ) -> None:
        # The most important columns come first; on a narrow terminal, only the last ones are
        # truncated.
        wide = Column(no_wrap=True, min_width=29)
        narrow = Column(no_wrap=True, min_width=12)
        super().__init__(
            screen,
            TextColumn("{task.fields[live]}", style="bold", table_column=wide),
            TextColumn("{task.fields[left]}", style="cyan", table_column=narrow),
            BarColumn(bar_width=16 if screen.width >= 120 else 6),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[facts]}", table_column=Column(no_wrap=True)),
        )
        self._folder = folder
        self._limit = limit
        self._resumes = resumes
        self._finished = 0
        self._left = TimeLeft(tasks)
        self._seconds_left = ""
        self._followed: dict[int, FollowedTask] = {}
        self._shown = FollowedTask(0, TaskTime(""))
        self._looked_at = time.monotonic()
        self._bars: dict[int, TaskID] = {}

    def __enter__(self) -> Self:
        # Plain lines need no thread here: they are printed when steps are counted.
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            folder = mask(str(self._folder))
            finished = f"Records: {folder}"
            how_to_go_on = "the same command starts over"
            if self._resumes:
                finished = f"Finished runs are in {folder} (trainmark compare {folder})"
                how_to_go_on = "--resume with the same command continues"
            kept = finished if self._finished else "No run finished"
            self._screen.print(f"{kept}; {how_to_go_on}.", soft_wrap=True, markup=False)

    def task_started(self, task: Task[Any]) -> None:
        """Follow a new process."""
        time_left = self._left.started(kind_of(task))
        self._shown = FollowedTask(len(task.runs), time_left)
        self._followed[id(task)] = self._shown
        self._bars[id(task)] = self._progress.add_task(
            "", total=None, visible=False, live="", facts="", left=""
        )

    def run_started(self, task: Task[Any], run: Run | CommandRun, replayed: bool) -> None:
        """Follow a run, in a new process or in that of a continued training."""
        self._followed[id(task)].run_started(run, replayed=replayed)
        if isinstance(run, Run) and run.settings.log_every is not None:
            self._screen.print(f"{escape(self._followed[id(task)].description)}:")

    def answered(self, task: Task[Any], answer: Answer) -> None:
        """Update the line; print the logged steps."""
        self._followed[id(task)].on_answer(answer)
        for line in answer.log if isinstance(answer, EpochEnded) else ():
            rate = self._followed[id(task)].pace(line.samples_per_second)
            took = units.seconds(line.seconds_per_step)
            self._screen.print(
                f"step {line.step:>6}: loss {units.loss(line.loss)} ({rate}; {took}/step)"
            )

    def counted(self, task: Task[Any], steps: int) -> None:
        """Update the number of steps, as counted by the process, and the time left."""
        now = time.monotonic()
        before = self._looked_at
        shown = self._followed[id(task)]
        self._shown = shown
        self._looked_at = now
        shown.count(steps, now - before)
        self._seconds_left = at_most_left(self._limit) or self._estimate_left()
        bar = self._bars[id(task)]
        self._progress.update(
            bar,
            description=escape(shown.description),
            visible=True,
            total=shown.steps or None,
            completed=steps,
            live=shown.live,
            facts=" · ".join(filter(None, (shown.facts, shown.use))),
            left=self._seconds_left if bar == min(self._bars.values()) else "",
        )
        self._lines.print_if_due()

    def _estimate_left(self) -> str:
        """Return the estimated time until the last task is done; empty if unknown."""
        left = self._left.estimate()
        return "" if left is None else f"~{units.seconds(whole_seconds(left))} left"

    def _words(self) -> str:
        """Return the text of a plain line."""
        shown = self._shown
        steps = f"step {min(shown.done, shown.steps):,} of {shown.steps:,}" if shown.steps else ""
        how = ", ".join(filter(None, (shown.live, steps, shown.facts, self._seconds_left)))
        return f"{shown.description}: {how}"

    def sampled(self, task: Task[Any], rows: Sequence[Row], gpu: int | None) -> None:
        """Update the utilisation of the process."""
        self._followed[id(task)].use = use(rows, gpu)

    def recorded(self, task: Task[Any], record: Record) -> None:
        """Print the line of a finished run."""
        self._finished += record.outcome.status == "ok"
        print_ended(self._screen, record, _summary(record, self._followed[id(task)].turn))
        self._lines.another_said()

    def task_ended(self, task: Task[Any]) -> None:
        """Use its duration for the time left of similar tasks."""
        self._left.done(self._followed.pop(id(task)).time)
        self._progress.remove_task(self._bars.pop(id(task)))


class FollowedTask:
    """The state of one process.

    Args:
        runs: number of its runs.
        time: its times, kept up to date.
    """

    def __init__(self, runs: int, time: TaskTime) -> None:
        self._runs = runs
        self.time = time
        self._ready = False
        self._epochs = 0
        self._tokens = 0
        self._loss: float | None = None
        self._rate: float | None = None
        self._rate_of = ""
        self._to_the_end = True
        self._pace = Throughput()
        self.description = ""
        self.turn = ""
        self.facts = "starting, reading the data"
        self.steps = 0
        self.done = 0
        self.use = ""

    @property
    def live(self) -> str:
        """Its rate and its loss, as far as known."""
        loss = "" if self._loss is None else f"loss {units.loss(self._loss)}"
        return " · ".join(filter(None, (self.pace(self._rate) if self._rate else "", loss)))

    def pace(self, samples_per_second: float) -> str:
        """Return a rate in tokens for a text, else in samples."""
        if self._tokens:
            return units.rate(samples_per_second * self._tokens, "tokens/s")
        return units.rate(samples_per_second, "samples/s")

    def run_started(self, run: Run | CommandRun, *, replayed: bool) -> None:
        """Start a run."""
        self.turn = run.turn
        self._to_the_end = not run.blocks
        if isinstance(run, Run):
            given = run.scheduled.workload.input
            if isinstance(given, Tokens):
                self._tokens = given.length
            size = run.scheduled.workload.batches.size
            if isinstance(size, int):
                self._pace = Throughput(float(size))
        elif isinstance(run, CommandRun):
            self.facts = "starting, in a copy of the folder" if run.of.scratch else "starting"
        self.description = f"{run.title}, {run.turn}{' (replayed)' if replayed else ''}"

    def on_answer(self, answer: Answer) -> None:
        """Update from an answer."""
        match answer:
            case Ready():
                self._ready = True
                if self._to_the_end:
                    self.steps = answer.steps * self._runs
                    self._epochs = answer.epochs
                self.facts = "compiling" if answer.epochs else "running"
            case Compiled():
                self.facts = f"epoch 1/{self._epochs}" if self._epochs else "measuring speed"
                # The time of the compilation must not count.
                self._pace = Throughput(self._pace.samples_a_step)
            case EpochEnded():
                self._epoch_ended(answer)
            case Waiting() if answer.loss is not None:
                self._loss = answer.loss
            case SliceTimed() if answer.examples:
                self._rate = answer.examples / answer.seconds
                self._rate_of = "slice"
            case Evaluated() if self._tokens:
                self.facts += f" · test loss {units.loss(answer.test_loss)}"
            case Evaluated() if answer.test_accuracy is not None:
                self.facts += f" · test acc {units.percent(answer.test_accuracy, 1)}"

    def count(self, steps: int, seconds: float) -> None:
        """Update the number of steps, and add the seconds of computing since the last call."""
        self.done = steps
        # A rate that was measured is better: it leaves out evaluations and other sides.
        if not self._rate_of:
            self._rate = self._pace.rate(steps) or self._rate
        self.time.share = steps / self.steps if self.steps else 0.0
        self.time.elapsed += seconds
        self.time.trained += seconds if self._ready else 0.0

    def _epoch_ended(self, epoch: EpochEnded) -> None:
        if epoch.examples and epoch.seconds and self._rate_of != "slice":
            self._rate = epoch.examples / epoch.seconds
            self._rate_of = "epoch"
        done = epoch.index + 1
        of = self._epochs  # the total is unknown for a command
        # A single one may be the rest of a training in which none was recognised.
        self.facts = f"{done:,} epochs done" if done > 1 else "running"
        if of:
            self.facts = f"epoch {min(done + 1, of)}/{of}"
        loss = epoch.losses[-1] if epoch.losses else epoch.train_loss
        self._loss = self._loss if loss is None else loss
        if epoch.train_accuracy is not None and not self._tokens:
            self.facts += f" · acc {units.percent(epoch.train_accuracy, 1)}"


def print_ended(screen: Console, record: Record, words: str) -> None:
    """Print the line of a finished run."""
    mark = "[green]✓[/green]" if record.outcome.status == "ok" else "[red]✗[/red]"
    screen.print(f"{mark} {escape(words)}", soft_wrap=True)


def use(rows: Sequence[Row], gpu: int | None) -> str:
    """Return the utilisation of the cores and the GPU by the process, as far as known."""
    if len(rows) < 2:
        return ""
    gpus = rows[-1].gpus
    shares = {"cpu": tree_percent(rows[-2], rows[-1])}
    if gpu is not None and gpu < len(gpus):
        shares["gpu"] = gpus[gpu].percent
    known = {name: share for name, share in shares.items() if share is not None}
    return " · ".join(f"{name} {share:.0f} %" for name, share in known.items())


def _summary(record: Record, turn: str) -> str:
    layout = ""
    spread = record.group.spread
    if spread:
        layout = f" {spread.data}×{spread.pipeline}"
        if not spread.all_reduce:
            layout += ", without averaging"
    which = f"{side_of(record)}{layout}, {turn}"
    if record.outcome.status != "ok":
        printed = record.outcome.stderr_tail if record.process else None
        last = last_words(printed)
        words = f"; it said: {last[:_LONGEST_WORDS]}" if last else ""
        return f"{which}: {record.outcome.status}, {record.outcome.reason}{words}"
    facts = []
    if record.process is not None and record.process.seconds is not None:
        facts.append(f"{units.seconds(record.process.seconds)} from start to end")
    if record.slices and not record.epochs:
        seconds = sum(each.seconds for each in record.slices)
        of_slices = pace(sum(each.examples for each in record.slices) / seconds, record)
        facts.append(f"{units.many(len(record.slices), 'slice')}, {of_slices}")
    if record.epochs:
        steps = sum(epoch.steps or 0 for epoch in record.epochs)
        seen = record.observed
        if seen is not None and len(seen.training_starts) > 1:  # ends of epochs may be missed
            steps = max(steps, seen.steps - 1)
        came = length(record.epoch_count or 0, steps, by_steps=asks_for_steps(record))
        facts.append(f"{came} in {units.seconds(record.final.training_seconds)}")
        rate = summarize(record).samples_per_second
        if rate is not None:
            facts.append(pace(rate, record))
    if tokens_of(record) and record.final.test_loss is not None:
        facts.append(f"test loss {units.loss(record.final.test_loss)}")
    elif record.final.test_accuracy is not None:
        facts.append(f"test accuracy {units.percent(record.final.test_accuracy)}")
    if record.final.train_loss is not None:
        facts.append(f"train loss {units.loss(record.final.train_loss)}")
    return f"{which}: {', '.join(facts)}"
