"""Explain where the time of one side goes, by ablation of its training step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from trainmark import units
from trainmark.analysis.advice import Advice, advise
from trainmark.analysis.attribution import Attribution, Dissection, attribute
from trainmark.analysis.crossing import Crossing, crossing
from trainmark.analysis.statistics import Estimate
from trainmark.backends import registry
from trainmark.errors import ExplanationFailed
from trainmark.execute.parent.machine_state import MachineState, read_machine_state
from trainmark.execute.parent.peaks import Keep, find_peaks
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.record.record import Peaks
from trainmark.study.chosen import choose
from trainmark.study.explain import measure
from trainmark.study.explain.measure import ExplainedSide
from trainmark.study.observer import OnProgress

_LARGEST_ON_CPU = 2048
"""A larger matrix product is hardly faster on a CPU, and takes a second."""


@dataclass(frozen=True)
class Explanation:
    """Where the time of one side goes.

    Args:
        crossing: against the CPU; None if the side is on the CPU, or for the reason in
            ``no_crossing``.
    """

    subject: ExplainedSide
    found: Dissection
    attribution: Attribution
    advice: tuple[Advice, ...]
    crossing: Crossing | None
    no_crossing: str | None = None


def prepare(request: RunRequest, preparation: PreparationObserver) -> ExplainedSide:
    """Find the side to explain, its data, and its device's peak.

    Args:
        request: of one workload; by default the first backend, ``idiomatic`` and the best device.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    chosen = choose(request, preparation, partial(_the_one, request))
    side = chosen.side
    place = (side, chosen.settings.threads)
    state = read_machine_state()
    seen = {(side.backend, side.interpreter.label): chosen.seen}

    def read_state() -> MachineState:
        return state

    peaks = find_peaks(
        [place], seen, Keep(request.cache / "limits"), read_state, preparation.measuring
    )
    size = _peak_size(peaks.get(place), accelerator=chosen.accelerator)
    return ExplainedSide(
        **vars(chosen), busy=state.is_busy, cores=state.machine.usable_cores or 1, peak_size=size
    )


def explain(
    subject: ExplainedSide, on_progress: OnProgress, seconds: float = measure.SECONDS
) -> Explanation:
    """Measure ``subject`` and its variants, and attribute the time of a step.

    Args:
        on_progress: called with the current step and the share done.
        seconds: approximate measurement time; start-up comes on top.

    Raises:
        ExplanationFailed: a process died or took too long.
    """
    found = measure.dissect(subject, on_progress, seconds)
    attribution = attribute(found)
    require_steady(attribution.step_seconds)
    overtaking = None
    why_not = None
    if subject.accelerator:
        overtaking, why_not = _overtaking(subject, on_progress, seconds)
    recipe = registry.recipe(subject.side.backend)
    return Explanation(
        subject, found, attribution, advise(found, attribution, recipe), overtaking, why_not
    )


def require_steady(step: Estimate) -> None:
    """Raise :class:`~trainmark.errors.ExplanationFailed` if the time of a step may be negative."""
    if step.value <= 0 or (step.low is not None and step.low <= 0):
        bounds = f"{units.seconds(step.low)}, {units.seconds(step.high)}"
        raise ExplanationFailed(
            "the rounds differ by more than a whole step, so its time can't be attributed",
            found=f"a step of {units.seconds(step.value)} [{bounds}]",
            fix="Use more --seconds on an idle machine.",
        )


def _overtaking(
    subject: ExplainedSide, on_progress: OnProgress, seconds: float
) -> tuple[Crossing | None, str | None]:
    """Find the batch size at which the device overtakes the CPU, or why it can't be found."""
    try:
        swept = measure.sweep_devices(subject, on_progress, seconds)
    # The CPU may lack the precision, for example; the rest is still useful.
    except ExplanationFailed as failed:
        return None, str(failed)
    cpu = swept.get("cpu", {})
    device = swept.get(subject.side.device, {})
    if not cpu.keys() & device.keys():
        return None, "no batch size was timed on both devices"
    return crossing(cpu, device), None


def _the_one(request: RunRequest, sides: Sequence[Side]) -> Side:
    """Choose the side; an accelerator before the CPU, since users usually ask about that."""
    best = [side for side in sides if side.device != "cpu"] or sides
    style = "idiomatic" if any(side.style == "idiomatic" for side in best) else "fast"
    return next(side for side in best if request.styles or side.style == style)


def _peak_size(peaks: Peaks | None, *, accelerator: bool) -> int | None:
    """Return the size of the matrix product that measures the peak in every round, if known."""
    size = None if peaks is None else peaks.conditions.get("matmul_size")
    if not isinstance(size, int):
        return None
    return size if accelerator else min(size, _LARGEST_ON_CPU)
