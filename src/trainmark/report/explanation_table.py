"""Where the time of a step goes: a table of causes, and sentences about the largest."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.advice import WORDS, Advice, largest_cause
from trainmark.analysis.attribution import Attribution, Share
from trainmark.analysis.crossing import Crossing
from trainmark.analysis.statistics import Estimate
from trainmark.report.table import Cell, Column, Table, TableRow

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
    step = attribution.step_seconds
    rows = [_row(share, step.value) for share in attribution.shares if not share.on_top]
    rows.append(_line("unexplained", rest, attribution.unexplained, step.value))
    rows += [_row(share, step.value) for share in attribution.shares if share.on_top]
    unknown = ", ".join(attribution.unknown)
    return Table(
        title=title,
        conditions=(f"a step takes {_seconds(step)}", *conditions),
        columns=(
            Column("cause"),
            Column("share of\na step", "right"),
            Column("95 % interval", "right"),
            Column("time in\na step", "right"),
            Column(""),
            Column("what it is", optional=True),
        ),
        rows=tuple(rows),
        notes=(*notes, *_of_noise(attribution), *((f"Not measured here: {unknown}.",) if unknown else ())),
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


def _row(share: Share, step: float) -> TableRow:
    return _line(share.cause, WORDS[share.cause][0], Estimate(share.share, share.low, share.high), step, share.on_top)


def _line(cause: str, words: str, share: Estimate, step: float, on_top: bool = False) -> TableRow:
    interval = "" if share.low is None or share.high is None else f"{_percent(share.low)} to {_percent(share.high)}"
    return TableRow(
        (
            Cell(cause, tone="dim" if on_top else "strong"),
            Cell(f"{'+' if on_top else ''}{_percent(share.value)}"),
            Cell(interval),
            Cell(units.seconds(round(share.value * step, 12))),
            Cell(_bar(share.value), tone="dim" if on_top else "plain"),
            Cell(words + (" (outside the steps, spread over them)" if on_top else ""), tone="dim"),
        ),
        starts_section=on_top or cause == "unexplained",
    )


def _bar(share: float) -> str:
    return "█" * round(_BAR_WIDTH * min(max(share, 0.0), 1.0))


def _percent(share: float) -> str:
    return units.percent(share, 1)


def _seconds(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return units.seconds(estimate.value)
    return f"{units.seconds(estimate.value)} [{units.seconds(estimate.low)}, {units.seconds(estimate.high)}]"
