"""A table of where the time of a step goes, and sentences about the largest causes."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.advice import WORDS, Advice, largest_cause
from trainmark.analysis.attribution import Attribution, Share
from trainmark.analysis.crossing import Crossing
from trainmark.analysis.statistics import Estimate
from trainmark.report.explained import ExplainedPart
from trainmark.report.table import Cell, Field, Table, interval, table_of

_BAR_WIDTH = 24
"""Length of the bar of a whole step, in characters."""
_ABOUT = 0.9
"""A share that is at least this multiple of the largest cause's counts as about as large."""


def explanation_table(
    title: str,
    conditions: tuple[str, ...],
    attribution: Attribution,
    notes: tuple[str, ...] = (),
    rest: str = "not attributed to any cause",
    answer: str = "",
) -> Table:
    """Return the table of the causes of a step's time, the largest first.

    Args:
        answer: the advice.
        title: the explained training.
        conditions: conditions of all rows.
        notes: notes below the table, before the list of what was not measured.
        rest: description of the unexplained part.
    """
    step = attribution.step_seconds
    left = attribution.unexplained
    parts: list[Share | ExplainedPart] = [share for share in attribution.shares if not share.on_top]
    parts.append(ExplainedPart("unexplained", left.value, left.low, left.high))
    parts += [share for share in attribution.shares if share.on_top]
    unknown = ", ".join(attribution.unknown)
    return table_of(
        parts,
        (
            Field("cause", _cause),
            Field("share of\na step", _share, "right"),
            Field("95 % interval", _interval, "right"),
            Field("time in\na step", lambda part: _time(part, step.value), "right"),
            Field("", _bar),
            Field("description", lambda part: _what_it_is(part, rest), optional=True),
        ),
        title=title,
        conditions=(f"a step takes {_seconds(step)}", *conditions),
        notes=(
            *notes,
            *_of_noise(attribution),
            *((f"Not measured here: {unknown}.",) if unknown else ()),
        ),
        starts_section=lambda part: part.on_top or isinstance(part, ExplainedPart),
        answer=Cell(answer) if answer else None,
    )


def sentences(attribution: Attribution, advice: tuple[Advice, ...]) -> list[str]:
    """Return the advice, the most that you can gain, and the largest cause, in this order."""
    largest = largest_cause(attribution)
    if largest is None:
        return [
            "Too noisy to tell: no cause exceeds both the noise and the unexplained share. Try "
            "more --seconds, or an idle machine."
        ]
    cause = (
        f"The largest cause is {largest.cause}, {_percent(largest.share)} of a step: "
        f"{WORDS[largest.cause][0]}."
    )
    if not advice:
        return [WORDS[largest.cause][1], cause]
    best = advice[0]
    if _batch_is_too_small(best, largest):
        above_all = f"{largest.cause} ({_percent(largest.share)}): {WORDS[largest.cause][0]}"
        cause = (
            f"The main problem is that the batch is too small: {_percent(best.fixed or 0.0)} of "
            f"a step doesn't depend on the number of examples, mainly {above_all}."
        )
    if best.cause != largest.cause:
        cause += f" You can't reduce it; the next is {best.cause}."
    gain = f"{best.promise:.2f}×{interval(best.low, best.high)} as fast"
    how = f"Measured here: an epoch is {gain}." if best.measured else f"An epoch is at most {gain}."
    return [best.do, how, cause]


def _batch_is_too_small(best: Advice, largest: Share) -> bool:
    """Whether to report this first: it is certain, and at least about the largest cause."""
    if best.fixed is None or best.low is None or best.low <= 1:
        return False
    return best.fixed >= _ABOUT * largest.share


def crossing_sentence(crossing: Crossing, device: str) -> str:
    """Return from which batch size on the device overtakes the CPU."""
    smallest = min(crossing.seconds)
    largest = max(crossing.seconds)
    if crossing.batch is not None:
        return f"{device} overtakes the CPU at batches of about {round(crossing.batch):,} examples."
    if crossing.faster:
        return f"{device} is faster than the CPU at every batch size from {smallest:,} examples."
    return (
        f"{device} is not faster than the CPU at any batch size up to {largest:,} examples, "
        "the largest tried."
    )


def _of_noise(attribution: Attribution) -> tuple[str, ...]:
    """Return a note if the interval of any cause includes 0."""
    if any(map(_too_noisy, attribution.shares)):
        return ("More --seconds narrow the intervals.",)
    return ()


def _too_noisy(part: Share | ExplainedPart) -> bool:
    """Whether the interval of a cause includes 0; the unexplained part never counts as noisy."""
    return not isinstance(part, ExplainedPart) and part.low is not None and part.low < 0


def _cause(part: Share | ExplainedPart) -> Cell:
    return Cell(part.cause, tone="dim" if part.on_top else "strong")


def _share(part: Share | ExplainedPart) -> str:
    if _too_noisy(part):
        return units.MISSING
    share = _percent(part.share)
    return f"+{share}" if part.on_top else share


def _time(part: Share | ExplainedPart, step_seconds: float) -> str:
    if _too_noisy(part):
        return units.MISSING
    return units.seconds(round(part.share * step_seconds, 12))


def _interval(part: Share | ExplainedPart) -> str:
    if part.low is None or part.high is None:
        return ""
    if _too_noisy(part):
        return f"too noisy to tell (below {_percent(part.high)})"
    return f"{_percent(part.low)} to {_percent(part.high)}"


def _what_it_is(part: Share | ExplainedPart, rest: str) -> Cell:
    words = rest if isinstance(part, ExplainedPart) else WORDS[part.cause][0]
    if part.on_top:
        words += " (outside the steps, averaged over them)"
    return Cell(words, tone="dim")


def _bar(part: Share | ExplainedPart) -> Cell:
    length = 0 if _too_noisy(part) else round(_BAR_WIDTH * min(max(part.share, 0.0), 1.0))
    return Cell("█" * length, tone="dim" if part.on_top else "plain")


def _percent(share: float) -> str:
    return units.percent(share, 1)


def _seconds(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return units.seconds(estimate.value)
    bounds = f"{units.seconds(estimate.low)}, {units.seconds(estimate.high)}"
    return f"{units.seconds(estimate.value)} [{bounds}]"
