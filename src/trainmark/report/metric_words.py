"""The sentences about the figure that ``measure --metric`` names."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.results import GroupResult, Learning, MetricResult
from trainmark.record.named_metric import Better, NamedMetric
from trainmark.report.table import Cell, Tone, span
from trainmark.units import many

_MOST_NAMES = 12
"""Most names that a sentence lists."""


def value_words(value: float | None, of: MetricResult | None = None) -> str:
    """Return a value with four digits, and its percent sign if it was printed with one."""
    if value is None:
        return units.MISSING
    sign = " %" if of is not None and of.is_percentage else ""
    return f"{units.significant(value, 4)}{sign}"


def final_sentence(of: MetricResult, side: str = "") -> str:
    """Return the figure of one side as a sentence.

    Args:
        of: the figure.
        side: name of the side; empty if there is only one.
    """
    where = f"{side}: " if side else ""
    if of.lacking and of.example is not None:
        return where + lacking_sentence(of.example)
    if of.not_finite:
        runs = many(of.not_finite, "run")
        return f"{where}{of.name} is not a finite number at the end of {runs}."
    if of.mean is None:
        fix = "; --budget 0 trains to the end" if of.by_budget else ""
        return f"{where}{of.name} is not compared, since no training ran to its end{fix}."
    interval = ""
    if of.low is not None:
        low = value_words(of.low, of)
        interval = f" (95 % interval {low} to {value_words(of.high, of)})"
    best = value_words(of.best, of)
    if of.best_at is not None and of.counted_in is not None:
        best += f" at {of.counted_in} {of.best_at:,.10g}"
    mean = f", mean of {many(of.runs, 'run')}" if of.runs > 1 else ""
    last = value_words(of.mean, of)
    about = f"best {best}, {of.better} is better"
    return f"{where}{of.name} {last}{interval} at the end{mean} ({about})."


def lacking_sentence(found: NamedMetric) -> str:
    """Return why a figure has no value, and what to write instead."""
    name = found.name
    if found.candidates:
        several = ", ".join(found.candidates[:_MOST_NAMES])
        return f"{name} can mean several figures: {several}. Give --metric one of these names."
    if found.not_numbers:
        words = ", ".join(found.not_numbers)
        return f"{name} was never printed with a number that can be read, but with: {words}."
    others = ", ".join(found.others[:_MOST_NAMES]) or "no name with a number"
    return f"{name} was never printed or logged; found: {others}."


def compared_words(learning: Learning, these: GroupResult, those: GroupResult) -> str:
    """Return the verdict on the figure as the end of a sentence."""
    a = these.metric
    b = those.metric
    if a is None or b is None or a.name != b.name:
        return "; learning is not judged, since the sides were not asked for the same --metric"
    values = f"{value_words(a.mean, a)} and {value_words(b.mean, b)}"
    if learning.difference is None:
        lacks = [*map(_why_not, (a, b)), _why_not_alike(a, b)]
        return f"; learning is not judged: {next(filter(None, lacks), 'the values do not match')}"
    if learning.verdict == "same":
        return f"; both learn the same ({a.name} {values})"
    if learning.low is None:
        return f"; too few runs to compare learning ({a.name} {values})"
    if learning.verdict == "unclear":
        return f"; no clear difference in learning ({a.name} {values})"
    is_better = learning.difference > 0
    direction = a.better if is_better else _OPPOSITE[a.better]
    by = units.significant(abs(learning.difference), 4)
    if a.is_percentage:
        by = f"{abs(learning.difference):.2f} points"
    link = "and" if is_better else "but"
    return f"; {link} its {a.name} is {by} {direction} ({values}; {a.better} is better)"


_OPPOSITE: dict[Better, Better] = {"lower": "higher", "higher": "lower"}


def _why_not(side: MetricResult) -> str | None:
    """Return why the figure of a side can't be compared; None if it can."""
    if side.lacking:
        return f"{side.name} is missing in {many(side.lacking, 'run')}"
    if side.not_finite:
        return f"{side.name} is not finite at the end of {many(side.not_finite, 'run')}"
    if side.mean is None:
        fix = "; --budget 0 does that" if side.by_budget else ""
        return f"no training ran to its end, so {side.name} is not compared{fix}"
    return None


def _why_not_alike(a: MetricResult, b: MetricResult) -> str | None:
    """Return why the values of two sides can't be compared; None if they can."""
    if a.is_percentage is b.is_percentage:
        return None
    values = f"{value_words(a.mean, a)} and {value_words(b.mean, b)}"
    return f"{a.name} is a percentage on one side alone ({values})"


def signed(difference: float, *, in_points: bool = False) -> str:
    """Return a difference with its sign; that of percentages as percentage points."""
    sign = "−" if difference < 0 else "+"
    if in_points:
        return f"{sign}{abs(difference):.2f}"
    return f"{sign}{units.significant(abs(difference), 4)}"


def metric_cell(of: MetricResult | None) -> Cell:
    """Return the mean of the last values, with its interval below it."""
    if of is None or of.mean is None:
        return Cell(units.MISSING)
    bounds = "" if of.low is None else span(value_words(of.low, of), value_words(of.high, of))
    return Cell(value_words(of.mean, of), bounds, value=of.mean)


def learning_cell(
    learning: Learning, without_interval: str, tone: Tone, *, in_points: bool = False
) -> Cell:
    """Return the figure minus the reference's, and the verdict on it."""
    sign = -1.0 if learning.better == "lower" else 1.0
    difference = sign * (learning.difference or 0.0)
    shown = signed(difference, in_points=in_points)
    if learning.low is None or learning.high is None:
        return Cell(without_interval, shown, tone, learning.difference)
    low, high = sorted((sign * learning.low, sign * learning.high))
    bounds = f"{signed(low, in_points=in_points)}…{signed(high, in_points=in_points)}"
    return Cell(f"{shown} {learning.verdict}", bounds, tone, learning.difference)
