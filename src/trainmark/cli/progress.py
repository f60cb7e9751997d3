"""What a person sees while data comes and networks train. Everything here is drawn by the parent, on stderr."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from trainmark import units

if TYPE_CHECKING:
    from trainmark.execute.plan import Run, Task
    from trainmark.execute.wire import Message
    from trainmark.record.record import Record

_MARKS = {"ok": "[green]✓[/green]", "diverged": "[red]✗[/red]"}


class DataProgress:
    """Downloads, drawing, and the asking of backends."""

    def __init__(self, screen: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            console=screen,
            transient=True,
        )
        self._tasks: dict[str, int] = {}

    def __enter__(self) -> DataProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int | None, name: str) -> None:
        """Bytes have come."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, done="")
        text = f"{units.bytes_(done)} of {units.bytes_(total)}" if total else units.bytes_(done)
        self._progress.update(self._tasks[name], completed=done, total=total, done=text)  # type: ignore[arg-type]

    def asking(self, backend: str) -> None:
        """A backend is asked what it can do."""
        self._progress.add_task(f"asking {backend} for its devices", total=None, done="")


class TimeLeft:
    """Seconds until the last task is done, from how long the same side took before."""

    def __init__(self, tasks: list[Task]) -> None:
        self._left = [_kind(task) for task in tasks]
        self._took: dict[object, float] = {}

    def task_done(self, seconds: float) -> None:
        """The first of the tasks left has taken so long."""
        self._took[self._left.pop(0)] = seconds

    def estimate(self, elapsed: float, share: float) -> float | None:
        """Seconds left when the running task has ``elapsed`` and done ``share`` of its steps; None when unknown."""
        if not self._left:
            return 0.0
        known = self._took.get(self._left[0])
        if known is None and share > 0.02:
            known = elapsed / share
        if known is None:
            return None
        typical = max(self._took.values(), default=known)
        rest = sum(self._took.get(kind, known if kind == self._left[0] else typical) for kind in self._left[1:])
        return max(known - elapsed, 0.0) + rest


class RunProgress:
    """One line that moves, and one line for each run that is done."""

    def __init__(self, screen: Console, tasks: list[Task], *, log: bool = False) -> None:
        self._screen = screen
        self._log = log
        self._runs = sum(len(task.runs) for task in tasks)
        self._number = 0
        self._left = TimeLeft(tasks)
        self._runs_of_task = {id(run): len(task.runs) for task in tasks for run in task.runs}
        self._steps_a_run = 0
        self._task_started = time.monotonic()
        self._last_of_task = {id(task.runs[-1]) for task in tasks}
        self._pace = Pace()
        self._seen = ""
        self._progress = Progress(
            TextColumn("{task.fields[number]}", style="dim"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[facts]}"),
            TextColumn("{task.fields[left]}", style="cyan"),
            console=screen,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=None, number="", facts="", left="", visible=False)

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._progress.stop()

    def started(self, run: Run, replayed: bool) -> None:
        """A run begins: with a new process, unless it continues another."""
        self._number += 1
        continues = run.course.workload.schedule.protocol == "continued" and run.repeat > 0
        if not continues:
            self._task_started = time.monotonic()
            self._steps_a_run = 0
            self._pace = Pace()
        self._seen = "replayed, its record exists" if replayed else "starting" if not continues else self._seen
        of = run.course.published_run or f"round {run.round + 1}"
        self._progress.update(
            self._bar,
            description=f"[bold]{run.course.workload.name}[/bold] {run.side.title}, {of}",
            number=f"{self._number}/{self._runs}",
            facts=self._seen,
            visible=True,
        )

    def heard(self, run: Run, message: Message) -> None:  # noqa: ARG002
        """News of an epoch."""
        if message["event"] == "ready":
            self._steps_a_run = message["steps"]
            self._pace.start()
        elif message["event"] == "epoch":
            facts = [f"epoch {message['index'] + 1}", f"loss {units.loss(message['losses'][-1])}"]
            if "train_accuracy" in message:
                facts.append(f"acc {units.percent(message['train_accuracy'], 1)}")
            self._pace.epoch(message["examples"], message["steps"], message["seconds"])
            self._seen = " · ".join(facts)
            for line in message["log"] if self._log else ():
                self._screen.print(
                    f"step {line['step']:>6}: loss {units.loss(line['loss'])} "
                    f"({units.rate(line['samples_per_second'], 'samples/s')}; "
                    f"{units.seconds(line['seconds_per_step'])} a step)"
                )
        elif message["event"] == "evaluated":
            self._seen += f" · test acc {units.percent(message['test_accuracy'], 1)}"

    def counted(self, run: Run, steps: int) -> None:
        """Where the process is, read from outside."""
        total = self._steps_a_run * self._runs_of_task[id(run)]
        share = steps / total if total else 0.0
        left = self._left.estimate(time.monotonic() - self._task_started, share)
        rate = self._pace.rate(steps)
        facts = (self._seen, units.rate(rate, "samples/s") if rate else "")
        self._progress.update(
            self._bar,
            total=total or None,
            completed=steps,
            facts=" · ".join(fact for fact in facts if fact),
            left=f"{units.seconds(max(left, 1.0))} left" if left is not None else "",
        )

    def finished(self, record: Record) -> None:
        """One line that stays."""
        text = f"{_MARKS.get(record.outcome.status, '[red]✗[/red]')} {_summary(record)}"
        self._screen.print(text, soft_wrap=True)
        if record.outcome.status == "ok" and record.protocol == "continued":
            return
        self._left.task_done(time.monotonic() - self._task_started) if self._left._left else None

    def interrupted(self, folder: Path) -> None:
        """What Ctrl-C leaves."""
        self._screen.print(
            f"Interrupted. What is finished is in {folder}; the same command with --resume does the rest.",
            soft_wrap=True,
        )


class Pace:
    """Samples a second, from steps counted between looks."""

    def __init__(self) -> None:
        self._samples_a_step = 0.0
        self._looks: list[tuple[float, int]] = []

    def start(self) -> None:
        """Setting up is over."""
        self._looks = []

    def epoch(self, examples: int, steps: int, seconds: float) -> None:  # noqa: ARG002
        """An epoch tells how many samples a step has."""
        self._samples_a_step = examples / steps

    def rate(self, steps: int) -> float | None:
        """Samples a second over the last looks; None until it is known."""
        self._looks = [*self._looks[-10:], (time.monotonic(), steps)]
        (start, first), (end, last) = self._looks[0], self._looks[-1]
        return self._samples_a_step * (last - first) / (end - start) if end > start and last > first else None


def _kind(task: Task) -> object:
    return (task.first.course.workload.name, task.first.course.published_run, task.first.side)


def _summary(record: Record) -> str:
    name = f"{record.workload.name} {record.backend.name} {record.backend.style} {record.device.id} r{record.repeat}"
    if record.outcome.status != "ok":
        return f"{name}: {record.outcome.status}, {record.outcome.reason}"
    final = record.final
    facts = [f"{len(record.epochs)} epochs in {units.seconds(final.training_seconds)}"]
    if final.test_accuracy is not None:
        facts.append(f"test accuracy {units.percent(final.test_accuracy)}")
    if final.train_loss is not None:
        facts.append(f"train loss {units.loss(final.train_loss)}")
    return f"{name}: {', '.join(facts)}"
