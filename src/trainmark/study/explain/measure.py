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
from trainmark.execute.child import converse
from trainmark.execute.dissect import NOT_A_PART
from trainmark.execute.plan import Course, Side
from trainmark.execute.turns import Pids, Seat, in_turns
from trainmark.execute.wire import Message
from trainmark.study.explain.variants import LARGER_TIMES, Variant, sweep, variants
from trainmark.workload.products import convolutions, products
from trainmark.workload.schedule import epoch_sizes

SECONDS = 100.0
ROUNDS = 25
SITTINGS = 5
"""Processes that make these rounds, one after the other; fewer where it takes long to be ready, but not two."""
_SETTLING_SHARE = 0.3
_THREADS_SHARE, _THREADS_ROUNDS, _THREADS_PAIRS = 0.3, 5, 4
"""Pairs of processes, each with a few long stretches."""
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
    workload = subject.course.workload
    ratio = _threads_ratio(subject, tell, seconds, timeout) if subject.starved else None
    threads = subject.cores if subject.starved else subject.threads
    options = subject.options(threads)
    planned = variants(
        workload,
        options,
        subject.course.dataset.train_examples,
        accelerator=subject.accelerator,
        fast=subject.fast,
    )
    settling = _SETTLING_SHARE * seconds
    chain = _Process(planned, threads, seconds, seconds, sittings=SITTINGS, settling=settling, probes=True)
    heard = list(_sit(subject, chain, tell, timeout))
    return dataclasses.replace(_dissection(subject, heard), threads_ratio=ratio)


def _sit(subject: Subject, chain: _Process, tell: Tell, timeout: float | None) -> Iterator[list[Message]]:
    """What each sitting said, one after the other, as many as the first one asks for."""
    number, of = 0, 1
    while number < of:
        sitting = dataclasses.replace(chain, sitting=number, sittings=of if number else chain.sittings)
        heard = _hold(subject, sitting, tell, timeout)
        yield heard
        number, of = number + 1, _ready(heard)["sittings"]


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
    workload, examples, threads = subject.course.workload, subject.course.dataset.train_examples, subject.threads
    devices = ("cpu", subject.side.device)
    planned = {
        device: sweep(workload, dataclasses.replace(subject.options(threads), device=device), examples)
        for device in devices
    }
    on_cpu, on_device = (
        _Process(planned[device], threads, _SWEEP_SHARE * seconds, _SWEEP_SHARE * seconds, _SWEEP_ROUNDS)
        for device in devices
    )
    found: dict[str, dict[int, float]] = {}
    for device, heard in zip(devices, _hold_both(subject, on_cpu, on_device, tell, timeout), strict=True):
        rounds = _rounds(heard)
        for variant in planned[device]:
            size = variant.workload.batches.size
            if variant.name in rounds[0] and size != "full":
                took = lower_quartile([each[variant.name] for each in rounds])
                if took > 0:
                    found.setdefault(device, {})[size] = took
    return found


def _threads_ratio(subject: Subject, tell: Tell, seconds: float, timeout: float | None) -> Estimate:
    """Seconds with all cores / seconds with those that were asked for: of pairs of processes, in turns."""
    workload, budget = subject.course.workload, _THREADS_SHARE * seconds / _THREADS_PAIRS
    some, every = (
        _Process([Variant(WHOLE, workload, subject.options(threads))], threads, budget, 2 * budget, _THREADS_ROUNDS)
        for threads in (subject.threads, subject.cores)
    )

    def tell_of_cores(what: str, share: float) -> None:
        tell(f"with {subject.threads} and with {subject.cores} cores, {what}", share)

    logs = []
    for _ in range(_THREADS_PAIRS):
        both = (_rounds(heard) for heard in _hold_both(subject, some, every, tell_of_cores, timeout))
        pairs = [(a[WHOLE], b[WHOLE]) for a, b in zip(*both, strict=False)]
        if ratios := [math.log(b / a) for a, b in pairs if min(a, b) > 0]:
            logs.append(statistics.median(ratios))
    if not logs:
        raise ExplanationFailed("the multi-core variant finished too quickly to time", fix="Use more --seconds.")
    return paired_difference(logs).exponential()


@dataclass(frozen=True)
class _Process:
    """What one process is asked for.

    Args:
        budget: seconds that all rounds take, about.
        patience: no round begins after so many; the same for both of two, or one would have fewer rounds.
        sitting, sittings: it is this one, from 0, of so many, each of which makes its part of the rounds.
        settling: seconds that all of them may take to be ready; the first tells how many that allows. None is no limit.
        probes: the products of a step and the peak, too.
    """

    planned: list[Variant]
    threads: int | None
    budget: float
    patience: float
    rounds: int = ROUNDS
    sitting: int = 0
    sittings: int = 1
    settling: float | None = None
    probes: bool = False

    def request(self, subject: Subject, seat: Seat | None) -> Message:
        course = subject.course
        return {
            "event": "dissect",
            "seat": seat,
            "backend": subject.side.backend,
            "dataset": {"name": course.dataset.name, "directory": str(course.dataset.directory)},
            "variants": [variant.to_data() for variant in self.planned],
            "products": list(products(course.model, subject.batch)) if self.probes else [],
            "convolutions": list(convolutions(course.model, subject.batch)) if self.probes else [],
            "peak_size": subject.peak_size,
            "window": self.budget / (self.rounds * len(self.planned)),
            "budget": self.patience,
            "rounds": self.rounds,
            "sitting": self.sitting,
            "sittings": self.sittings,
            "settling": self.settling,
        }


def _hold(
    subject: Subject,
    process: _Process,
    tell: Tell,
    timeout: float | None,
    seat: Seat | None = None,
    pids: Pids | None = None,
) -> list[Message]:
    """All that ``process`` said."""
    side = subject.side
    heard: list[Message] = []
    sittings, rounds = process.sittings, process.rounds

    def tell_of(what: str, share: float) -> None:
        place = f"process {process.sitting + 1} of {sittings}, " if sittings > 1 else ""
        tell(f"{place}{what}", (process.sitting + share) / sittings)

    def hear(message: Message) -> None:
        nonlocal sittings, rounds
        heard.append(message)
        if message["event"] == "preparing":
            tell_of(f"preparing: {message['name']}", _PREPARING * message["done"] / message["of"])
        elif message["event"] == "ready":
            sittings, rounds = message["sittings"], message["rounds"]
        elif message["event"] == "round":
            done = message["index"] + 1
            tell_of(f"round {done} of {rounds}", _PREPARING + (1 - _PREPARING) * done / rounds)

    pids = pids or Pids()
    try:
        ending = converse(
            side.interpreter.path,
            lambda _: process.request(subject, seat),
            hear=hear,
            born=pids.born,
            threads=process.threads,
            timeout=timeout,
            inherited=seat or (),
        )
    finally:
        pids.gone()
    if ending.status != "done":
        failed = next((message["reason"] for message in heard if message["event"] == "failed"), ending.reason)
        raise ExplanationFailed(f"{side.title} can't be explained", found=failed or "no answer")
    return heard


def _hold_both(
    subject: Subject, first: _Process, second: _Process, tell: Tell, timeout: float | None
) -> tuple[list[Message], list[Message]]:
    """What two processes said that had their rounds in turns; the first one's progress is told."""
    pids = Pids()
    return in_turns(
        lambda seat: _hold(subject, first, tell, timeout, seat, pids),
        lambda seat: _hold(subject, second, lambda *_: None, timeout, seat, pids),
        pids.end,
    )


def _rounds(heard: list[Message]) -> list[Round]:
    return [message["seconds"] for message in heard if message["event"] == "round"]


def _ready(heard: list[Message]) -> Message:
    return next(message for message in heard if message["event"] == "ready")


def _sitting(heard: list[Message]) -> Sitting:
    return Sitting(
        rounds=tuple(_rounds(heard)),
        starts=tuple(message["starts"] for message in heard if message["event"] == "round"),
        lengths=_ready(heard)["lengths"],
    )


def _dissection(subject: Subject, heard: list[list[Message]]) -> Dissection:
    workload = subject.course.workload
    sizes = epoch_sizes(workload.schedule, workload.batches, subject.course.dataset.train_examples)
    said = [message for messages in heard for message in messages]
    dropped = {
        message["name"]: message["reason"]
        for message in said
        if message["event"] == "dropped" and message["reason"] != NOT_A_PART
    }
    return Dissection(
        sittings=tuple(map(_sitting, heard)),
        steps_per_epoch=len(sizes[0]),
        flops=subject.batch * subject.course.model.training_flops,
        peak_flops=None if subject.peak_size is None else 2.0 * subject.peak_size**3,
        batch=subject.batch,
        larger=LARGER_TIMES,
        evaluations=tuple(message["seconds"] for message in said if message["event"] == "evaluated"),
        compile_seconds=_ready(said)["compile_seconds"],
        steps=sum(len(epoch) for epoch in sizes),
        looks=len(sizes) if workload.schedule.evaluate == "every-epoch" else 1,
        accelerator=subject.accelerator,
        dropped=dropped,
    )
