"""Whether each device is as fast as others of its model, by its measured peak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.yardstick import Yardstick
from trainmark.backends import registry
from trainmark.execute.parent.examine import Framework
from trainmark.execute.parent.here import look_around
from trainmark.execute.parent.peaks import Keep, find_peaks
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, probe
from trainmark.record.caveats import BUSY_SHARE
from trainmark.record.record import Peaks
from trainmark.report.conditions import when_measured
from trainmark.study.doctor.check import Check, passed, skipped, warned

SLOW_SHARE = 0.8
"""Of the reference of the same model; a shared or virtual machine comes and goes by as much as this leaves."""


@dataclass(frozen=True)
class Pace:
    """A device and what it reached.

    Args:
        backend: that measured it.
        name: of the device's model.
        kind: ``cpu`` or ``accelerator``.
        cores: that may be used.
    """

    device: str
    name: str | None
    kind: str
    cores: int | None
    backend: str
    peaks: Peaks


def measure(frameworks: Sequence[Framework], keep: Keep) -> tuple[Pace, ...]:
    """The limits of every device that a framework sees, with the best framework that does."""
    best: dict[str, str] = {}
    able = {each.name for each in frameworks if each.problem is None}
    for name in (name for name in registry.entries() if name in able):
        for device in next(each.devices or () for each in frameworks if each.name == name):
            best.setdefault(device, name)
    return tuple(pace for device, backend in best.items() for pace in _measured(device, backend, keep))


def _measured(device: str, backend: str, keep: Keep) -> Iterator[Pace]:
    seen = probe(THIS, backend)
    found, about = seen.device(device), seen.can
    if found is None or about is None:
        return
    side = Side(backend, "fast", device, THIS, version=about.version)
    here = look_around()
    peaks = find_peaks([(side, None)], {(backend, THIS.label): seen}, keep, lambda: here)
    for reached in peaks.values():
        accelerator = found.kind == "accelerator"
        name = found.name if accelerator else here.machine.cpu
        yield Pace(device, name, found.kind, here.machine.usable_cores, backend, reached)


def against(paces: Iterable[Pace], known: Sequence[Yardstick]) -> Iterator[Check]:
    """Every device against the reference of its model."""
    for pace in paces:
        yield _against(pace, known)


def _against(pace: Pace, known: Sequence[Yardstick]) -> Check:
    id_, reached = f"pace.{pace.device}", pace.peaks.matmul_flops_per_second
    if reached is None:
        return skipped(id_, "its peak was not measured")
    peaks = pace.peaks
    when = when_measured(peaks.created, peaks.others_share)
    rate = f"{units.flops(reached)}/s in float32 products of {pace.backend}, {when}"
    same = next((each for each in known if each.is_model_of(pace.name, pace.kind, pace.cores)), None)
    of_same = same.matmul_flops_per_second.get("fp32") if same else None
    if same is None or of_same is None:
        others = "; ".join(
            f"{each.device} reaches {units.flops(each.matmul_flops_per_second['fp32'])}/s"
            for each in known
            if "fp32" in each.matmul_flops_per_second
        )
        return passed(id_, f"{rate}; no reference of the same model" + (f"; {others}" if others else ""))
    share = reached / of_same
    found = f"{rate}: {share:.0%} of the reference of the same model ({same.source})"
    if share < SLOW_SHARE:
        busy = (peaks.others_share or 0.0) > BUSY_SHARE
        fix = "The machine was busy: repeat when idle" if busy else "See host.load, host.cpu-quota, gpu.throttling"
        return warned(id_, found, fix)
    return passed(id_, found)
