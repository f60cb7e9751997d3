"""A record as named numbers over time, as training loggers store them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.record.facts import facts_of
from trainmark.record.record import Record, Samples

_OF_AN_EPOCH = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "evaluation_seconds")


@dataclass(frozen=True)
class ScalarPoint:
    """One number at one time.

    Args:
        name: name, such as ``epoch/test_accuracy``.
        step: number of the epoch (from 1), the step (from 0) or the sample (from 0).
        seconds: time on the record's clock.
    """

    name: str
    step: int
    seconds: float
    value: float


def points(record: Record) -> Iterator[ScalarPoint]:
    """Yield the known figures of every epoch, step and sample taken from outside.

    The steps of an epoch are spread evenly over its duration, since only its start and end were
    timed.
    """
    first = 0
    for epoch in record.epochs:
        end = epoch.start_seconds + epoch.seconds
        yield ScalarPoint("epoch/seconds", epoch.index + 1, end, epoch.seconds)
        for name in _OF_AN_EPOCH:
            value = getattr(epoch, name)
            if value is not None:
                yield ScalarPoint(f"epoch/{name}", epoch.index + 1, end, value)
        steps = epoch.steps or 0
        for number, loss in enumerate(record.step_losses[first : first + steps]):
            yield ScalarPoint(
                "step/loss",
                first + number,
                epoch.start_seconds + epoch.seconds * (number + 1) / steps,
                loss,
            )
        first += steps
    if record.samples is not None:
        yield from _samples(record.samples)


def start_of(record: Record) -> float:
    """Return when the record's clock read 0, in seconds since 1970; 0 if unknown."""
    try:
        return datetime.datetime.fromisoformat(record.created).timestamp()
    except ValueError:
        return 0.0


_EXPORTED = (
    "workload",
    "backend",
    "version",
    "style",
    "device",
    "device_name",
    "precision",
    "machine",
    "cpu",
    "labels",
    "threads",
    "seed",
    "round",
    "dataset",
    "parameters",
    "outcome",
    "trainmark",
)


def facts(record: Record) -> dict[str, str]:
    """Return a description of the run, by name."""
    caveats = " ".join(caveat.value for caveat in record.caveats)
    named = {**facts_of(record, _EXPORTED), "caveats": caveats, "record": record.id}
    return {name: str(value) for name, value in named.items() if value not in (None, "")}


def results(record: Record) -> dict[str, float]:
    """Return the run's final numbers that are known and finite."""
    final = record.final
    known = {name: getattr(final, name) for name in final.__struct_fields__}
    known["compile_seconds"] = record.compile_seconds
    known["process_seconds"] = record.process.seconds if record.process else None
    known["joules"] = record.energy.joules if record.energy else None
    return {
        name: value for name, value in known.items() if value is not None and math.isfinite(value)
    }


def _samples(samples: Samples) -> Iterator[ScalarPoint]:
    whole = {"cpu_percent": samples.tree_cpu_percent, "resident_bytes": samples.tree_resident_bytes}
    for name, column in whole.items():
        for row, (second, value) in enumerate(zip(samples.t, column or (), strict=False)):
            if value is not None:
                yield ScalarPoint(f"seen/{name}", row, second, value)
    for name in ("gpu_percent", "gpu_memory_bytes", "gpu_watts"):
        rows = getattr(samples, name) or ()
        for row, (second, values) in enumerate(zip(samples.t, rows, strict=False)):
            for gpu, value in enumerate(values):
                if value is not None:
                    yield ScalarPoint(f"seen/{name}/{gpu}", row, second, value)
