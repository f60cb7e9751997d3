"""One side taken apart, in processes of its own."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainmark.analysis.attribution import WHOLE, Dissection
from trainmark.analysis.statistics import Estimate, paired_difference
from trainmark.backends.base import Options
from trainmark.errors import ExplanationFailed
from trainmark.execute.child import converse
from trainmark.execute.dissect import NOT_A_PART
from trainmark.execute.plan import Course, Side
from trainmark.execute.wire import Message
from trainmark.study.explain.variants import LARGER_TIMES, Variant, sweep, variants
from trainmark.workload.products import products
from trainmark.workload.schedule import epoch_sizes

SECONDS = 100.0
ROUNDS = 20
PAIRS = 4
"""Of processes, with some cores and with all; few, since each imports its framework."""
_PAIR_SHARE, _PAIR_ROUNDS = 0.02, 5
_FAST_SHARE = 0.1
_SWEEP_SHARE, _SWEEP_ROUNDS = 0.15, 5
_PREPARING = 0.3

Tell = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Subject:
    """What is explained.

    Args:
        threads: of the CPU; None is the framework's own choice.
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
        side = self.side
        return Options(side.style, side.device, side.precision, self.seed, threads, self.memory_fraction)


def dissect(subject: Subject, tell: Tell, seconds: float = SECONDS, timeout: float | None = None) -> Dissection:
    """Time the variants of ``subject``, for so many seconds; where it may use some cores only, with all of them.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    ratio = _threads_ratio(subject, tell, seconds, timeout) if subject.starved else None
    threads = subject.cores if subject.starved else subject.threads
    planned = variants(
        subject.course.workload,
        subject.options(threads),
        subject.course.dataset.train_examples,
        accelerator=subject.accelerator,
        fast=subject.fast,
    )
    heard = _hold(subject, planned, threads, seconds, ROUNDS, tell, timeout, probes=True)
    found = dataclasses.replace(_dissection(subject, heard), threads_ratio=ratio)
    if not subject.fast or subject.side.style == "fast":
        return found
    options = dataclasses.replace(subject.options(threads), style="fast")
    heard = _hold(
        subject,
        [Variant(WHOLE, subject.course.workload, options)],
        threads,
        _FAST_SHARE * seconds,
        ROUNDS,
        lambda what, share: tell(f"the style fast, {what}", share),
        timeout,
    )
    return dataclasses.replace(found, fast=_steps_and_starts(heard))


def sweep_devices(
    subject: Subject, tell: Tell, seconds: float = SECONDS, timeout: float | None = None
) -> dict[str, dict[int, float]]:
    """Seconds of a step on the CPU and on the device of ``subject``, by batch size.

    One process a device, since not every framework can have both in one.

    Returns:
        By the device's id; sizes that could not be had, or were over before they could be timed, are left out.

    Raises:
        ExplanationFailed: a process died, or took too long.
    """
    workload, examples = subject.course.workload, subject.course.dataset.train_examples
    found: dict[str, dict[int, float]] = {}
    for device in ("cpu", subject.side.device):
        planned = sweep(workload, dataclasses.replace(subject.options(subject.threads), device=device), examples)
        heard = _hold(
            subject,
            planned,
            subject.threads,
            _SWEEP_SHARE * seconds,
            _SWEEP_ROUNDS,
            tell,
            timeout,
        )
        rounds = _rounds(heard)
        for variant in planned:
            size = variant.workload.batches.size
            if variant.name in rounds[0] and size != "full":
                took = statistics.median(each[variant.name] for each in rounds)
                if took > 0:
                    found.setdefault(device, {})[size] = took
    return found


def _threads_ratio(subject: Subject, tell: Tell, seconds: float, timeout: float | None) -> Estimate:
    """Seconds with all cores / seconds with those that were asked for: pairs of processes, one after the other."""
    logs = []
    for pair in range(PAIRS):
        took = {}
        for turn, threads in enumerate((subject.threads, subject.cores)):
            tell(f"with {threads} of {subject.cores} cores", (2 * pair + turn) / (2 * PAIRS))
            planned = [Variant(WHOLE, subject.course.workload, subject.options(threads))]
            heard = _hold(subject, planned, threads, _PAIR_SHARE * seconds, _PAIR_ROUNDS, lambda *_: None, timeout)
            took[threads] = statistics.median(each[WHOLE] for each in _rounds(heard))
        logs.append(math.log(took[subject.cores] / took[subject.threads]))
    return paired_difference(logs).exponential()


def _hold(
    subject: Subject,
    planned: list[Variant],
    threads: int | None,
    budget: float,
    rounds: int,
    tell: Tell,
    timeout: float | None,
    *,
    probes: bool = False,
) -> list[Message]:
    """What the process said that timed the variants; with ``probes`` the products of a step and the peak, too."""
    side, course = subject.side, subject.course
    request = {
        "event": "dissect",
        "backend": side.backend,
        "dataset": {"name": course.dataset.name, "directory": str(course.dataset.directory)},
        "variants": [variant.to_data() for variant in planned],
        "products": list(products(course.model, subject.batch)) if probes else [],
        "peak_size": subject.peak_size,
        "budget": budget,
        "rounds": rounds,
    }
    heard: list[Message] = []

    def hear(message: Message) -> None:
        heard.append(message)
        if message["event"] == "preparing":
            tell(f"preparing: {message['name']}", _PREPARING * message["done"] / message["of"])
        elif message["event"] == "round":
            done = message["index"] + 1
            tell(f"round {done} of {rounds}", _PREPARING + (1 - _PREPARING) * done / rounds)

    ending = converse(side.interpreter.path, lambda _: request, hear=hear, threads=threads, timeout=timeout)
    if ending.status != "done":
        failed = next((message["reason"] for message in heard if message["event"] == "failed"), ending.reason)
        raise ExplanationFailed(f"{side.title} can't be taken apart", found=failed or "no answer")
    return heard


def _rounds(heard: list[Message]) -> list[Mapping[str, float]]:
    return [message["seconds"] for message in heard if message["event"] == "round"]


def _steps_and_starts(heard: list[Message]) -> tuple[tuple[float, float], ...]:
    """Seconds of a step and of an epoch's start, of the one variant of each round."""
    rounds = [message for message in heard if message["event"] == "round"]
    return tuple((message["seconds"][WHOLE], message["starts"][WHOLE]) for message in rounds)


def _dissection(subject: Subject, heard: list[Message]) -> Dissection:
    workload = subject.course.workload
    sizes = epoch_sizes(workload.schedule, workload.batches, subject.course.dataset.train_examples)
    ready = next(message for message in heard if message["event"] == "ready")
    return Dissection(
        rounds=tuple(_rounds(heard)),
        starts=tuple(message["starts"] for message in heard if message["event"] == "round"),
        steps_per_epoch=len(sizes[0]),
        flops=subject.batch * subject.course.model.training_flops,
        peak_flops=None if subject.peak_size is None else 2.0 * subject.peak_size**3,
        batch=subject.batch,
        larger=LARGER_TIMES,
        evaluations=tuple(message["seconds"] for message in heard if message["event"] == "evaluated"),
        compile_seconds=ready["compile_seconds"],
        steps=sum(len(epoch) for epoch in sizes),
        looks=len(sizes) if workload.schedule.evaluate == "every-epoch" else 1,
        accelerator=subject.accelerator,
        dropped={
            message["name"]: message["reason"]
            for message in heard
            if message["event"] == "dropped" and message["reason"] != NOT_A_PART
        },
    )
