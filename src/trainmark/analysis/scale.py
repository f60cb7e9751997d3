"""The results of a scaling study."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.analysis.results import Speedup
from trainmark.analysis.statistics import Estimate
from trainmark.record.caveats import Caveat


@dataclass(frozen=True)
class Agreement:
    """The losses of a layout compared with one device's, both in float64.

    Args:
        steps: number of compared steps.
        largest_difference: largest relative difference of two losses; None without steps.
        tolerance: largest difference that counts as rounding.
        parts_at_step: the first step whose difference is larger, from 0.
        passed: whether both trainings finished and agree at every step.
        reason: why not, for the user.
    """

    steps: int
    largest_difference: float | None
    tolerance: float
    parts_at_step: int | None
    passed: bool
    reason: str | None


@dataclass(frozen=True)
class LayoutResult:
    """One measured layout.

    Args:
        ranks: total number of devices.
        runs: number of finished timed runs; ``failed`` is the number of failed runs of any kind,
        also those without all-reduce and those for losses.
        batch: examples of a step, over all copies.
        samples_per_second, tokens_per_second, step_seconds: median over the runs, with its
            interval.
        speedup: speed-up over one device, by slices.
        efficiency: speed-up per device.
        communication: share of a step saved if the copies don't average their gradients; negative
            is noise.
        agreement: None for one device, a batch that grows with the copies, and a device without
            float64.
        reason: why results are missing.
        caveats: caveats of all runs.
    """

    data: int
    pipeline: int
    ranks: int
    runs: int
    failed: int
    batch: int
    samples_per_second: Estimate | None
    step_seconds: Estimate | None
    speedup: Speedup | None
    efficiency: Estimate | None
    communication: Estimate | None
    agreement: Agreement | None
    reason: str | None
    caveats: tuple[Caveat, ...] = ()
    tokens_per_second: Estimate | None = None

    @property
    def pace(self) -> Estimate | None:
        """The throughput in the unit of its workload."""
        return self.tokens_per_second or self.samples_per_second


@dataclass(frozen=True)
class Scaling:
    """The results of all layouts; field names are the keys of ``trainmark scale --json``.

    Args:
        batch: examples of a step on one device.
        threads: threads per rank, the same for all layouts; None is the framework's default.
    """

    workload: str
    dataset: str
    backend: str
    style: str
    device: str
    precision: str
    mode: str
    batch: int
    steps: int
    repeats: int
    threads: int | None
    nodes: int
    layouts: tuple[LayoutResult, ...]
    notices: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What the throughput counts."""
        return "tokens" if any(each.tokens_per_second for each in self.layouts) else "examples"

    @property
    def passed(self) -> bool:
        """Whether every run finished, with the losses of one device."""
        finished = all(each.failed == 0 and each.reason is None for each in self.layouts)
        agreements = (each.agreement for each in self.layouts)
        return finished and all(each is None or each.passed for each in agreements)
