"""Compare a device with others of its model, and with reference devices.

The references are a small set of measured machines (``yardsticks.json``, made by
``bench/yardsticks.py`` from the records in ``docs/results``), and the catalogue's published timings
that name their hardware.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

import msgspec

from trainmark.analysis.results import Comparison, DeviceReference, GroupResult
from trainmark.workload import catalog

_FILE = Path(__file__).with_name("yardsticks.json")


class Rate(msgspec.Struct, frozen=True):
    """A measured throughput: the median of ``runs``, in a steady epoch."""

    workload: str
    step_fingerprint: str
    backend: str
    version: str | None
    style: str
    precision: str
    samples_per_second: float
    runs: int


class Yardstick(msgspec.Struct, frozen=True):
    """One measured device.

    Args:
        device: its name, as in records.
        kind: ``cpu`` or ``accelerator``.
        cores: cores that a CPU's runs could use; None for an accelerator.
        source: who measured it, when, and with which versions.
    """

    device: str
    kind: str
    cores: int | None
    source: str
    rates: list[Rate]

    def is_model_of(self, device: str | None, kind: str, cores: int | None) -> bool:
        """Return whether a device is the same model, and for CPUs has the same number of cores."""
        same_cores = kind != "cpu" or self.cores == cores
        return self.device == device and self.kind == kind and same_cores


@functools.cache
def measured() -> tuple[Yardstick, ...]:
    """Return the reference devices that ship with the package."""
    return msgspec.json.decode(_FILE.read_bytes(), type=tuple[Yardstick, ...])


def device_references(
    comparison: Comparison, known: Iterable[Yardstick] | None = None
) -> tuple[DeviceReference, ...]:
    """Compare every group with the reference devices of its workload.

    The same model comes first, then the fastest.
    """
    known = measured() if known is None else tuple(known)
    found: list[DeviceReference] = []
    for position, group in enumerate(comparison.groups):
        if group.samples_per_second is None:
            continue
        rows = [*_measured(position, group, known), *_published(position, group)]
        found += sorted(rows, key=lambda row: (not row.same_model, -row.samples_per_second))
    return tuple(found)


def _measured(
    position: int, group: GroupResult, known: Iterable[Yardstick]
) -> Iterator[DeviceReference]:
    key = group.key
    pace = group.samples_per_second or 0.0
    kind = "accelerator" if key.device_name is not None else "cpu"
    same_work = (key.step_fingerprint, key.precision)
    for yardstick in known:
        rates = [
            rate for rate in yardstick.rates if (rate.step_fingerprint, rate.precision) == same_work
        ]
        same_model = yardstick.is_model_of(key.device_name or key.cpu, kind, key.cores)
        if same_model:  # with the same backend and style
            rates = [
                rate for rate in rates if (rate.backend, rate.style) == (key.backend, key.style)
            ]
        if rates:
            best = max(rates, key=attrgetter("samples_per_second"))
            cores = "" if yardstick.cores is None else f", {yardstick.cores} cores"
            yield DeviceReference(
                position=position,
                device=f"{yardstick.device}{cores}",
                same_model=same_model,
                samples_per_second=best.samples_per_second,
                how=f"{best.backend} {best.version or ''} {best.style}",
                source=yardstick.source,
                ratio=pace / best.samples_per_second,
            )


def _published(position: int, group: GroupResult) -> Iterator[DeviceReference]:
    """Yield published timings of the same steps that name their hardware."""
    key = group.key
    listed = (catalog.find(name) for name in catalog.names() if ":" not in name)
    same_steps = (each for each in listed if each.step_fingerprint == key.step_fingerprint)
    workload = next(same_steps, None)
    if workload is None or workload.published is None or not key.train_examples:
        return
    for timing in itertools.chain.from_iterable(run.timings for run in workload.published.runs):
        if timing.quantity == "epoch_seconds" and "not named" not in timing.hardware:
            pace = key.train_examples / timing.value
            how = f"published, {timing.includes}"
            ratio = (group.samples_per_second or 0.0) / pace
            yield DeviceReference(
                position, timing.hardware, False, pace, how, workload.published.source, ratio
            )
