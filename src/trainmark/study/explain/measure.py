"""Time the variants of one side, in separate processes."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from trainmark.analysis.attribution import Dissection, Sitting
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import Estimate, lower_quartile
from trainmark.errors import ExplanationFailed
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.scheduler import RunObserver
from trainmark.execute.parent.task import Task
from trainmark.execute.protocol import answers
from trainmark.execute.protocol.worker_commands import Dissect, Variant
from trainmark.record.store import Store
from trainmark.scratch import scratch_folder
from trainmark.study.chosen import ChosenSide
from trainmark.study.explain.variants import LARGER_TIMES, swept_sizes, variants
from trainmark.study.observer import OnProgress
from trainmark.study.pair import compare_settings
from trainmark.study.rounds import Budget
from trainmark.workload.model import lay_out
from trainmark.workload.products import convolutions, products
from trainmark.workload.reduce import ablated, with_batch
from trainmark.workload.schedule import epoch_sizes

SECONDS = 100.0
"""Default duration of the measurement, in seconds, without start-up."""
ROUNDS = 25
"""Number of rounds, each of which times every variant once."""
SITTINGS = 5
"""Consecutive processes that these rounds are spread over.

They are fewer if start-up is slow, but never two.
"""
_SETTLING_SHARE = 0.3
"""Share of the measurement time that all processes may take to start, which limits their number."""
_THREADS_SHARE = 0.3
"""Share of the measurement time that comparing numbers of threads takes on top."""
_SWEEP_SHARE = 0.15
"""Share of the measurement time that trying batch sizes takes on top, on each device."""
_PREPARING = 0.3
"""Share of the progress bar that preparing the variants gets."""
_EVALUATIONS = 3
"""Number of timed evaluations, in the first process."""
_SWEEP_ROUNDS = 5
"""Number of rounds in which each batch size is timed."""
_LEAST_STRETCH = 0.05
"""Shortest timed stretch of a batch size, relative to the usual one."""
_MOST_STRETCH = 8.0
"""Longest timed stretch of a batch size, relative to the usual one."""


@dataclass(frozen=True)
class ExplainedSide(ChosenSide):
    """The side that is explained.

    Args:
        busy: whether other processes used the CPU just before.
        cores: number of usable cores.
        peak_size: rows and columns of the product that was fastest on this device; None if unknown.
    """

    busy: bool
    cores: int
    peak_size: int | None

    @property
    def starved(self) -> bool:
        """Whether --threads leaves cores unused."""
        return self.settings.threads is not None and self.settings.threads < self.cores

    @property
    def threads_of_shares(self) -> int | None:
        """Number of threads that the shares are measured with; None is the framework's choice."""
        return self.cores if self.starved else self.settings.threads

    @property
    def fast(self) -> bool:
        """Whether its backend has the style ``fast``."""
        return self.seen.can is not None and "fast" in self.seen.can.styles


def dissect(
    subject: ExplainedSide, on_progress: OnProgress, seconds: float = SECONDS
) -> Dissection:
    """Time the variants of ``subject`` for about ``seconds``, with all cores.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    scheduled = subject.scheduled
    model = lay_out(
        ablated(scheduled.workload)["memory"]
    )  # the products that no other cause contains
    ratio = _threads_ratio(subject, on_progress, seconds) if subject.starved else None
    planned = variants(
        scheduled.workload,
        dataclasses.replace(subject.options(), threads=subject.threads_of_shares),
        scheduled.dataset.train_examples,
        accelerator=subject.accelerator,
        fast=subject.fast,
    )
    request = dataclasses.replace(
        _interleaved(subject, tuple(planned), seconds, ROUNDS),
        products=tuple(products(model, subject.batch)),
        convolutions=tuple(convolutions(model, subject.batch)),
        peak_size=subject.peak_size,
        sittings=SITTINGS,
        settling=_SETTLING_SHARE * seconds,
    )
    received = list(_sit(subject, request, on_progress))
    found = _dissection(subject, subject.batch * model.training_flops, received)
    return dataclasses.replace(found, threads_ratio=ratio)


def _sit(
    subject: ExplainedSide, request: Dissect, on_progress: OnProgress
) -> Iterator[list[answers.Answer]]:
    """Yield the answers of each sitting; the first one decides how many there are."""
    number = 0
    of = request.sittings
    while number < of:
        evaluations = 0 if number else _EVALUATIONS
        sitting = dataclasses.replace(request, sitting=number, sittings=of, evaluations=evaluations)
        received = _hold(subject, sitting, on_progress)
        yield received
        number = number + 1
        of = answers.of_kind(received, answers.VariantsReady)[0].sittings


def sweep_devices(
    subject: ExplainedSide, on_progress: OnProgress, seconds: float = SECONDS
) -> dict[str, dict[int, float]]:
    """Measure seconds per step on the CPU and on the device of ``subject``, by batch size.

    Each device has a separate process, since not every framework can use both in one.

    Returns:
        Seconds by device id and batch size, without sizes that failed or finished too quickly to
        time.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    return {
        device: _seconds_by_batch(subject, device, on_progress, seconds)
        for device in ("cpu", subject.side.device)
    }


def _threads_ratio(subject: ExplainedSide, on_progress: OnProgress, seconds: float) -> Estimate:
    """Measure seconds with all cores / with the requested threads, from interleaved slices."""
    budget = Budget(_THREADS_SHARE * seconds)
    start = time.perf_counter()
    settings = {
        f"{threads} threads": dataclasses.replace(subject.settings, kind="rounds", threads=threads)
        for threads in (subject.cores, subject.settings.threads)
    }

    class Rounds(RunObserver):
        def task_started(self, task: Task[Run]) -> None:
            share = min((time.perf_counter() - start) / budget.seconds, 1.0)
            on_progress(f"{' against '.join(settings)}, {task.first.turn}", share)

    observer = Rounds()

    def running(_tasks: Sequence[Task[Run]]) -> AbstractContextManager[RunObserver]:
        return nullcontext(observer)

    def say_nothing(_text: str) -> None:
        """Ignore messages about rounds, which the user did not ask for."""

    with scratch_folder() as folder:
        store = Store(Path(folder))
        records = compare_settings(subject, settings, store, running, budget, say_nothing)
    sliced = compare_slices(*records)
    if sliced is None:
        every = itertools.chain.from_iterable(records)
        reasons = [each.outcome.reason for each in every if each.outcome.reason]
        found = reasons[0] if reasons else "no slice in common"
        raise ExplanationFailed("the threads can't be compared", found=found)
    return sliced.ratio()


def _hold(
    subject: ExplainedSide, request: Dissect, on_progress: OnProgress
) -> list[answers.Answer]:
    """Carry out ``request`` in a process and return all its answers."""
    sittings = request.sittings
    rounds = request.rounds

    def tell_of(what: str, share: float) -> None:
        place = f"process {request.sitting + 1} of {sittings}, " if sittings > 1 else ""
        on_progress(f"{place}{what}", (request.sitting + share) / sittings)

    def on_answer(answer: answers.Answer) -> None:
        nonlocal sittings, rounds
        match answer:
            case answers.Preparing():
                tell_of(f"preparing: {answer.name}", _PREPARING * answer.done / answer.of)
            case answers.VariantsReady():
                sittings = answer.sittings
                rounds = answer.rounds
            case answers.RoundTimed():
                done = answer.index + 1
                tell_of(f"round {done} of {rounds}", _PREPARING + (1 - _PREPARING) * done / rounds)

    threads = request.variants[0].options.threads
    received, ending = subject.ask(request, on_answer=on_answer, threads=threads)
    kinds = set(map(type, received))
    is_whole = {answers.VariantsReady, answers.RoundTimed} <= kinds
    if ending.status != "done" or not is_whole:
        found = ending.reason or "no answer"
        raise ExplanationFailed(f"{subject.side.title} can't be explained", found=found)
    return received


def _sitting(received: list[answers.Answer]) -> Sitting:
    rounds = answers.of_kind(received, answers.RoundTimed)
    return Sitting(
        rounds=tuple(each.seconds for each in rounds),
        starts=tuple(each.starts for each in rounds),
        lengths=answers.of_kind(received, answers.VariantsReady)[0].lengths,
    )


def _dissection(
    subject: ExplainedSide, flops: float, received: list[list[answers.Answer]]
) -> Dissection:
    workload = subject.scheduled.workload
    sizes = epoch_sizes(
        workload.schedule, workload.batches, subject.scheduled.dataset.train_examples
    )
    all_answers = list(itertools.chain.from_iterable(received))
    dropped = answers.of_kind(all_answers, answers.Dropped)
    evaluated = answers.of_kind(all_answers, answers.EvaluationTimed)
    return Dissection(
        sittings=tuple(map(_sitting, received)),
        steps_per_epoch=len(sizes[0]),
        flops=flops,
        peak_flops=None if subject.peak_size is None else 2.0 * subject.peak_size**3,
        batch=subject.batch,
        larger=LARGER_TIMES,
        evaluations=tuple(answer.seconds for answer in evaluated),
        compile_seconds=answers.of_kind(all_answers, answers.VariantsReady)[0].compile_seconds,
        steps=sum(len(epoch) for epoch in sizes),
        number_of_evaluations=len(sizes) if workload.schedule.evaluate == "every-epoch" else 1,
        accelerator=subject.accelerator,
        dropped={
            answer.name: answer.reason for answer in dropped if answer.reason != answers.NOT_A_PART
        },
    )


def _interleaved(
    subject: ExplainedSide, variants: Sequence[Variant], seconds: float, rounds: int
) -> Dissect:
    """Return the request to time ``variants`` for about ``seconds``."""
    return Dissect(
        backend=subject.side.backend,
        dataset=subject.scheduled.dataset.folder,
        variants=tuple(variants),
        window=seconds / (rounds * len(variants)),
        budget=seconds,
        rounds=rounds,
    )


def _seconds_by_batch(
    subject: ExplainedSide, device: str, on_progress: OnProgress, seconds: float
) -> dict[int, float]:
    """Measure seconds per step on ``device`` by batch size, for its share of ``seconds``.

    Sizes that failed or finished too quickly to time are left out. Each timed stretch has about as
    many examples as that of the smallest size.
    """
    workload = subject.scheduled.workload
    options = dataclasses.replace(subject.options(), device=device)
    sizes = swept_sizes(subject.scheduled.dataset.train_examples)
    names = {size: f"{size} examples" for size in sizes}
    variants = []
    for size, name in names.items():
        stretch = min(max(min(names) / size, _LEAST_STRETCH), _MOST_STRETCH)
        variants.append(Variant(name, with_batch(workload, size), options, stretch=stretch))
    request = _interleaved(subject, variants, _SWEEP_SHARE * seconds, _SWEEP_ROUNDS)
    received = _hold(subject, request, on_progress)
    rounds = [each.seconds for each in answers.of_kind(received, answers.RoundTimed)]
    took = {
        size: lower_quartile([each[name] for each in rounds])
        for size, name in names.items()
        if name in rounds[0]
    }
    return {size: each for size, each in took.items() if each > 0}
