"""The answer to what more devices give."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.analysis.results import Speedup
from trainmark.analysis.statistics import Estimate
from trainmark.record.caveats import Caveat


@dataclass(frozen=True)
class Agreement:
    """The losses of a layout against those of one device, of the first round; see :mod:`trainmark.analysis.parity`."""

    steps: int
    largest_difference: float | None
    tolerance: float | None
    parts_at_step: int | None
    passed: bool
    reason: str | None


@dataclass(frozen=True)
class LayoutResult:
    """One layout, measured.

    Args:
        ranks: devices in all.
        runs: timed ones that came to their end; ``failed`` did not, those without the sum of gradients and those that
            losses are taken of among them.
        batch: examples of a step, of all copies together.
        samples_per_second, step_seconds: median over the runs, with its interval.
        speedup: over one device, by slices.
        efficiency: the same of each device, as a share of one device's.
        communication: share of a step that goes when the copies don't average their gradients; negative is noise.
        agreement: None for one device itself, and for a batch that grew.
        reason: why there is nothing, or less than was asked for.
        caveats: of any of the runs.
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


@dataclass(frozen=True)
class Scaling:
    """The answer; its field names are the keys of ``trainmark scale --json``.

    Args:
        batch: examples of a step on one device.
        threads: of every rank, the same for all layouts; None is the framework's own choice.
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
    def passed(self) -> bool:
        """Whether every run came to its end, with the losses of one device."""
        return all(
            each.failed == 0 and each.reason is None and (each.agreement is None or each.agreement.passed)
            for each in self.layouts
        )
