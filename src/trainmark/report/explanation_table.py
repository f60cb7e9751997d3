"""Where the time of a step goes: a table of causes, and sentences about the largest."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.advice import WORDS, Advice, largest_cause
from trainmark.analysis.attribution import Attribution, Share
from trainmark.analysis.crossing import Crossing
from trainmark.analysis.statistics import Estimate
from trainmark.report.explained import Part
from trainmark.report.table import Cell, Field, Table, table_of

_BAR_WIDTH = 24
_ABOUT = 0.9


def explanation_table(
    title: str,
    conditions: tuple[str, ...],
    attribution: Attribution,
    notes: tuple[str, ...] = (),
    rest: str = "not attributed to any cause",
) -> Table:
    """The causes of a step's time, the largest first.

    Args:
        title: the training that is explained.
        conditions: conditions of all rows.
        notes: notes below the table, before the list of what was not measured.
        rest: description of the unexplained part.
    """
    step, left = attribution.step_seconds, attribution.unexplained
    parts: list[Share | Part] = [share for share in attribution.shares if not share.on_top]
    parts.append(Part("unexplained", left.value, left.low, left.high))
    parts += [share for share in attribution.shares if share.on_top]
    unknown = ", ".join(attribution.unknown)
    return table_of(
        parts,
        (
            Field("cause", lambda part: Cell(part.cause, tone="dim" if part.on_top else "strong")),
            Field("share of\na step", lambda part: f"{'+' if part.on_top else ''}{_percent(part.share)}", "right"),
            Field("95 % interval", _interval, "right"),
            Field("time in\na step", lambda part: units.seconds(round(part.share * step.value, 12)), "right"),
            Field("", lambda part: Cell(_bar(part.share), tone="dim" if part.on_top else "plain")),
            Field("what it is", lambda part: _what_it_is(part, rest), optional=True),
        ),
        title=title,
        conditions=(f"a step takes {_seconds(step)}", *conditions),
        notes=(*notes, *_of_noise(attribution), *((f"Not measured here: {unknown}.",) if unknown else ())),
        starts_section=lambda part: part.on_top or isinstance(part, Part),
    )


def sentences(attribution: Attribution, advice: tuple[Advice, ...]) -> list[str]:
    """At most three: the largest cause, what to do, and the most that you can gain."""
    largest = largest_cause(attribution)
    if largest is None:
        return [
            "No cause is more than noise and larger than the unexplained share, so there is nothing to advise. "
            "Try more --seconds."
        ]
    said = [f"The largest cause is {largest.cause}, {_percent(largest.share)} of a step: {WORDS[largest.cause][0]}."]
    if not advice:
        return [*said, WORDS[largest.cause][1]]
    best = advice[0]
    if _batch_is_too_small(best, largest):
        above_all = f"{largest.cause} ({_percent(largest.share)}): {WORDS[largest.cause][0]}"
        said = [
            f"The largest cause is that the batch is too small: {_percent(best.fixed or 0.0)} of a step costs the same "
            f"for any number of examples, mainly {above_all}."
        ]
    if best.cause != largest.cause:
        said[0] += f" You can't reduce it. Next: {best.cause}."
    interval = "" if best.low is None or best.high is None else f" [{best.low:.2f}, {best.high:.2f}]"
    how = "Measured here" if best.measured else "At most"
    return [*said, best.do, f"{how}, that makes an epoch {best.promise:.2f}×{interval} as fast."]


def _batch_is_too_small(best: Advice, largest: Share) -> bool:
    """Whether to say this first: it is certain, and about as large as the largest cause or larger."""
    if best.fixed is None or best.low is None or best.low <= 1:
        return False
    return best.fixed >= _ABOUT * largest.share


def crossing_sentence(crossing: Crossing, device: str) -> str:
    """From which batch size on the device overtakes the CPU."""
    smallest, largest = min(crossing.seconds), max(crossing.seconds)
    if crossing.batch is not None:
        return f"{device} overtakes the CPU at batches of about {round(crossing.batch):,} examples."
    if crossing.faster:
        return f"{device} is faster than the CPU at every batch size from {smallest:,} examples."
    return f"{device} is never faster than the CPU up to batches of {largest:,} examples, the largest tried."


def _of_noise(attribution: Attribution) -> tuple[str, ...]:
    """A note on the causes whose interval holds 0."""
    lost = [each.cause for each in attribution.shares if each.low is not None and each.low < 0]
    return (f"Too noisy to tell: {', '.join(lost)}. More --seconds narrow the intervals.",) if lost else ()


def _interval(part: Share | Part) -> str:
    return "" if part.low is None or part.high is None else f"{_percent(part.low)} to {_percent(part.high)}"


def _what_it_is(part: Share | Part, rest: str) -> Cell:
    words = rest if isinstance(part, Part) else WORDS[part.cause][0]
    return Cell(words + (" (outside the steps, spread over them)" if part.on_top else ""), tone="dim")


def _bar(share: float) -> str:
    return "█" * round(_BAR_WIDTH * min(max(share, 0.0), 1.0))


def _percent(share: float) -> str:
    return units.percent(share, 1)


def _seconds(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return units.seconds(estimate.value)
    return f"{units.seconds(estimate.value)} [{units.seconds(estimate.low)}, {units.seconds(estimate.high)}]"
