"""One side taken apart, in processes of its own."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainmark.analysis.attribution import WHOLE, Dissection, Round, Sitting
from trainmark.analysis.statistics import Estimate, lower_quartile, paired_difference
from trainmark.backends.base import Options
from trainmark.errors import ExplanationFailed
from trainmark.execute.parent.plan import Course, Side
from trainmark.execute.parent.process import converse
from trainmark.execute.protocol.answers import (
    NOT_A_PART,
    Answer,
    Dropped,
    EvaluationTimed,
    Prepared,
    Preparing,
    RoundTimed,
)
from trainmark.execute.protocol.requests import Dissect, Variant
from trainmark.study.explain.variants import LARGER_TIMES, sweep, variants
from trainmark.workload.products import convolutions, products
from trainmark.workload.schedule import epoch_sizes

SECONDS = 100.0
ROUNDS = 25
SITTINGS = 5
"""Processes that make these rounds, one after the other; fewer where it takes long to be ready, but not two."""
_SETTLING_SHARE = 0.3
_THREADS_SHARE, _THREADS_ROUNDS, _THREADS_PAIRS = 0.3, 5, 4
"""Pairs of processes, one after the other, each with a few long stretches."""
_SWEEP_SHARE, _SWEEP_ROUNDS = 0.15, 5
_PREPARING = 0.3

Tell = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Subject:
    """What is explained.

    Args:
        threads: of the CPU; None is the framework's own choice.
        device_name: of its device's model.
        busy: others used the CPU when it was looked at last.
        cores: that can be used here.
        accelerator: its device is not the CPU.
        fast: its backend has that style.
        peak_size: rows and columns of the product that was fastest on this device; None where that is unknown.
    """

    course: Course
    side: Side
    seed: int
    threads: int | None
    memory_fraction: float | None
    device_name: str | None
    busy: bool
    cores: int
    accelerator: bool
    fast: bool
    peak_size: int | None

    @property
    def batch(self) -> int:
        """Examples a step."""
        size = self.course.workload.batches.size
        return self.course.dataset.train_examples if size == "full" else size

    @property
    def starved(self) -> bool:
        """Whether cores stand idle by order."""
        return self.threads is not None and self.threads < self.cores

    def options(self, threads: int | None) -> Options:
        """How it is run."""
        return self.side.options(self.seed, threads, self.memory_fraction)


def dissect(subject: Subject, tell: Tell, seconds: float = SECONDS, timeout: float | None = None) -> Dissection:
    """Time the variants of ``subject``, for so many seconds; where it may use some cores only, with all of them.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    course, model = subject.course, subject.course.model
    ratio = _threads_ratio(subject, tell, seconds, timeout) if subject.starved else None
    options = subject.options(subject.cores if subject.starved else subject.threads)
    planned = variants(
        course.workload,
        options,
        course.dataset.train_examples,
        accelerator=subject.accelerator,
        fast=subject.fast,
    )
    request = dataclasses.replace(
        _request(subject, tuple(planned), seconds, ROUNDS),
        products=tuple(products(model, subject.batch)),
        convolutions=tuple(convolutions(model, subject.batch)),
        peak_size=subject.peak_size,
        sittings=SITTINGS,
        settling=_SETTLING_SHARE * seconds,
    )
    heard = list(_sit(subject, request, tell, timeout))
    return dataclasses.replace(_dissection(subject, heard), threads_ratio=ratio)


def _sit(subject: Subject, request: Dissect, tell: Tell, timeout: float | None) -> Iterator[list[Answer]]:
    """What each sitting said, one after the other, as many as the first one asks for."""
    number, of = 0, request.sittings
    while number < of:
        heard = _hold(subject, dataclasses.replace(request, sitting=number, sittings=of), tell, timeout)
        yield heard
        number, of = number + 1, _ready(heard).sittings


def sweep_devices(
    subject: Subject, tell: Tell, seconds: float = SECONDS, timeout: float | None = None
) -> dict[str, dict[int, float]]:
    """Seconds of a step on the CPU and on the device of ``subject``, by batch size.

    A process a device, since not every framework can have both in one.

    Returns:
        By the device's id; sizes that could not be had, or were over before they could be timed, are left out.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    found: dict[str, dict[int, float]] = {}
    for device in ("cpu", subject.side.device):
        options = dataclasses.replace(subject.options(subject.threads), device=device)
        planned = sweep(subject.course.workload, options, subject.course.dataset.train_examples)
        request = _request(subject, planned, _SWEEP_SHARE * seconds, _SWEEP_ROUNDS)
        rounds = _rounds(_hold(subject, request, tell, timeout))
        for variant in planned:
            size = variant.workload.batches.size
            if variant.name in rounds[0] and size != "full":
                took = lower_quartile([each[variant.name] for each in rounds])
                if took > 0:
                    found.setdefault(device, {})[size] = took
    return found


def _threads_ratio(subject: Subject, tell: Tell, seconds: float, timeout: float | None) -> Estimate:
    """Seconds with all cores / seconds with those that were asked for: of pairs of processes, in changing order."""
    budget = _THREADS_SHARE * seconds / _THREADS_PAIRS / 2

    def seconds_with(threads: int | None, done: int) -> float:
        def tell_of_cores(what: str, share: float) -> None:
            tell(f"with {threads} cores, {what}", (done + share) / (2 * _THREADS_PAIRS))

        whole = Variant(WHOLE, subject.course.workload, subject.options(threads))
        request = _request(subject, (whole,), budget, _THREADS_ROUNDS)
        return statistics.median(each[WHOLE] for each in _rounds(_hold(subject, request, tell_of_cores, timeout)))

    logs, order = [], [subject.threads, subject.cores]
    for pair in range(_THREADS_PAIRS):
        took = {threads: seconds_with(threads, 2 * pair + place) for place, threads in enumerate(order)}
        if min(took.values()) > 0:
            logs.append(math.log(took[subject.cores] / took[subject.threads]))
        order.reverse()
    if not logs:
        raise ExplanationFailed("the multi-core variant finished too quickly to time", fix="Use more --seconds.")
    return paired_difference(logs).exponential()


def _request(subject: Subject, planned: tuple[Variant, ...], budget: float, rounds: int) -> Dissect:
    """Time ``planned`` for about ``budget`` seconds."""
    return Dissect(
        backend=subject.side.backend,
        dataset=subject.course.dataset.folder,
        variants=planned,
        window=budget / (rounds * len(planned)),
        budget=budget,
        rounds=rounds,
    )


def _hold(subject: Subject, request: Dissect, tell: Tell, timeout: float | None) -> list[Answer]:
    """All that the process said which carried out ``request``."""
    side = subject.side
    heard: list[Answer] = []
    sittings, rounds = request.sittings, request.rounds

    def tell_of(what: str, share: float) -> None:
        place = f"process {request.sitting + 1} of {sittings}, " if sittings > 1 else ""
        tell(f"{place}{what}", (request.sitting + share) / sittings)

    def hear(answer: Answer) -> None:
        nonlocal sittings, rounds
        heard.append(answer)
        match answer:
            case Preparing():
                tell_of(f"preparing: {answer.name}", _PREPARING * answer.done / answer.of)
            case Prepared():
                sittings, rounds = answer.sittings, answer.rounds
            case RoundTimed():
                done = answer.index + 1
                tell_of(f"round {done} of {rounds}", _PREPARING + (1 - _PREPARING) * done / rounds)

    threads = request.variants[0].options.threads
    ending = converse(side.interpreter.path, lambda _: request, hear=hear, threads=threads, timeout=timeout)
    if ending.status != "done":
        raise ExplanationFailed(f"{side.title} can't be explained", found=ending.reason or "no answer")
    return heard


def _rounds(heard: list[Answer]) -> list[Round]:
    return [answer.seconds for answer in heard if isinstance(answer, RoundTimed)]


def _ready(heard: list[Answer]) -> Prepared:
    return next(answer for answer in heard if isinstance(answer, Prepared))


def _sitting(heard: list[Answer]) -> Sitting:
    return Sitting(
        rounds=tuple(_rounds(heard)),
        starts=tuple(answer.starts for answer in heard if isinstance(answer, RoundTimed)),
        lengths=_ready(heard).lengths,
    )


def _dissection(subject: Subject, heard: list[list[Answer]]) -> Dissection:
    workload = subject.course.workload
    sizes = epoch_sizes(workload.schedule, workload.batches, subject.course.dataset.train_examples)
    said = [answer for answers in heard for answer in answers]
    dropped = [answer for answer in said if isinstance(answer, Dropped) and answer.reason != NOT_A_PART]
    return Dissection(
        sittings=tuple(map(_sitting, heard)),
        steps_per_epoch=len(sizes[0]),
        flops=subject.batch * subject.course.model.training_flops,
        peak_flops=None if subject.peak_size is None else 2.0 * subject.peak_size**3,
        batch=subject.batch,
        larger=LARGER_TIMES,
        evaluations=tuple(answer.seconds for answer in said if isinstance(answer, EvaluationTimed)),
        compile_seconds=_ready(said).compile_seconds,
        steps=sum(len(epoch) for epoch in sizes),
        looks=len(sizes) if workload.schedule.evaluate == "every-epoch" else 1,
        accelerator=subject.accelerator,
        dropped={answer.name: answer.reason for answer in dropped},
    )
