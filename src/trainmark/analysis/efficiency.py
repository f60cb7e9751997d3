"""Efficiency of a run relative to its device's peak.

FLOPs and bytes come from the specification; the limits are measured on the device itself. If
several frameworks measured the same device in the same precision, the highest limit counts for all.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from trainmark.analysis import datasheet
from trainmark.record.caveats import BUSY_SHARE
from trainmark.record.record import Record
from trainmark.workload import traffic
from trainmark.workload.decode import Misfit
from trainmark.workload.layers import Attention, PositionEmbedding
from trainmark.workload.model import Model, lay_out
from trainmark.workload.precision import PRECISIONS

Place = tuple[object, ...]


@dataclass(frozen=True)
class PlacePeaks:
    """The highest measured limits of one device in one precision.

    Args:
        measured_by: framework that reached the matrix-product limit.
        measured_at: when it was measured, in ISO 8601.
        disturbed: whether other programs used the machine or the device then, so the true peak may
            be higher.
    """

    flops_per_second: float
    bytes_per_second: float | None
    measured_by: str
    measured_at: str | None = None
    disturbed: bool = False


@dataclass(frozen=True)
class Efficiency:
    """The efficiency of a steady epoch.

    Args:
        flops_per_second: achieved, counting the matrix products and convolutions of the
            specification.
        mfu: model FLOP utilisation, the share of the measured peak.
        peak_flops_per_second: measured peak; for ``measured_by``, ``measured_at`` and ``disturbed``
            see :class:`Limit`.
        datasheet_flops_per_second: peak of the manufacturer's datasheet; None if unknown.
        intensity: FLOPs per byte that a step has to move at least.
        roofline_seconds: duration of a step limited only by the device's limits.
        gap: step time / ``roofline_seconds``.
        nanogpt_mfu: MFU by nanoGPT's formula, 6N + 12·L·H·Q·T FLOPs per token, where N leaves out
            the position embedding; None without attention.
    """

    flops_per_second: float
    mfu: float
    peak_flops_per_second: float
    measured_by: str
    measured_at: str | None
    disturbed: bool
    datasheet_flops_per_second: float | None
    intensity: float
    roofline_seconds: float | None
    gap: float | None
    nanogpt_mfu: float | None = None


def peaks_by_place(records: Iterable[Record]) -> dict[Place, PlacePeaks]:
    """Return the highest limits of every place in the records."""
    found: dict[Place, list[PlacePeaks]] = {}
    for record in records:
        limit = _peaks_of(record)
        if limit is not None:
            found.setdefault(place_of(record), []).insert(0, limit)  # if equal, the newest counts
    best = {}
    for place, peaks in found.items():
        fastest = max(peaks, key=attrgetter("flops_per_second"))
        copies = [each.bytes_per_second for each in peaks if each.bytes_per_second is not None]
        best[place] = dataclasses.replace(fastest, bytes_per_second=max(copies, default=None))
    return best


def _peaks_of(record: Record) -> PlacePeaks | None:
    peaks = record.peaks
    flops = _real(peaks.matmul_flops_per_second) if peaks else None
    if peaks is None or flops is None:
        return None
    busy = (peaks.others_share or 0.0) > BUSY_SHARE  # older records have no more facts
    return PlacePeaks(
        flops_per_second=flops,
        bytes_per_second=_real(peaks.copy_bytes_per_second),
        measured_by=record.backend.name,
        measured_at=peaks.created,
        disturbed=peaks.disturbed or busy,
    )


def _real(limit: float | None) -> float | None:
    """Return the limit if it is plausible, since records may come from others."""
    return limit if limit is not None and limit > 0 else None


def place_of(record: Record) -> Place:
    """Return a key that is equal for records with the same peaks."""
    machine = record.machine
    device = record.device
    host = (
        machine.name,
        machine.identity,
        machine.labelled,
        machine.cpu,
        machine.usable_cores,
        machine.cpu_quota,
    )
    return *host, record.threads, device.id, device.name, record.backend.precision


def efficiency(
    record: Record, samples_per_second: float | None, peaks: Mapping[Place, PlacePeaks]
) -> Efficiency | None:
    """Return the efficiency of runs like ``record``; None if it can't be computed.

    Args:
        record: any of the runs.
        samples_per_second: throughput in a steady epoch.
        peaks: result of :func:`peaks_by_place`.
    """
    limit = peaks.get(place_of(record))
    model = record.model
    precision = record.backend.precision or ""
    arithmetic = PRECISIONS.get(precision, PRECISIONS["fp32"])
    if limit is None or not samples_per_second or model is None or not record.epochs:
        return None
    if (record.group.world or 1) > 1:  # the limit is for one device
        return None
    examples = record.epochs[0].examples
    steps = record.epochs[0].steps
    if not examples or not steps:
        return None
    try:
        workload = record.workload.workload
        plan = lay_out(workload)
    except Misfit:  # a model of another version
        return None
    batch = examples / steps
    flops = batch * model.training_flops_per_example
    moved = traffic.compulsory(plan, workload.optimizer, batch, arithmetic.value_bytes)
    roofline = gap = None
    if limit.bytes_per_second is not None:
        roofline = max(flops / limit.flops_per_second, moved / limit.bytes_per_second)
        gap = batch / samples_per_second / roofline
    of_nanogpt = _nanogpt_flops(plan)
    nanogpt_mfu = None
    if of_nanogpt:
        nanogpt_mfu = samples_per_second * of_nanogpt / limit.flops_per_second
    achieved = samples_per_second * model.training_flops_per_example
    sheet = datasheet.find(record.device.name) if record.device.kind == "accelerator" else {}
    return Efficiency(
        flops_per_second=achieved,
        mfu=achieved / limit.flops_per_second,
        peak_flops_per_second=limit.flops_per_second,
        measured_by=limit.measured_by,
        measured_at=limit.measured_at,
        disturbed=limit.disturbed,
        datasheet_flops_per_second=sheet.get(precision),
        intensity=flops / moved,
        roofline_seconds=roofline,
        gap=gap,
        nanogpt_mfu=nanogpt_mfu,
    )


def _nanogpt_flops(plan: Model) -> int:
    """Return the training FLOPs per example as in nanoGPT's ``estimate_mfu``; 0 without attention.

    Source: PaLM, Chowdhery et al. 2022, appendix B.
    """
    attending = [each for each in plan.every_layer if isinstance(each.layer, Attention)]
    if not attending:
        return 0
    positions = sum(
        each.parameters for each in plan.every_layer if isinstance(each.layer, PositionEmbedding)
    )
    # The size of an input is heads · width of a head · length.
    squares = sum(12 * math.prod(each.input_shape) for each in attending)
    return plan.input_shape[0] * (6 * (plan.parameters - positions) + squares)
