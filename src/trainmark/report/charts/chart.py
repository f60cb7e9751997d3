"""A chart: what is drawn, and the same in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from trainmark.analysis.course import Station, course
from trainmark.analysis.results import Comparison, GroupResult
from trainmark.record.record import Record
from trainmark.report.length import which_epoch

if TYPE_CHECKING:
    import altair as alt

HEIGHT = 260
MEDIAN_AND_BAND = "Line: median over runs; band: lowest and highest of them (from 6 runs on the 95 % interval)."
FEWEST_POINTS = 3
"""Of a curve; one with fewer says no more than the table."""
_MOST_SAID = 8
_LOG_FROM = 20.0
"""Largest over smallest, from which on an axis is logarithmic."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class MeasuredSide:
    """One group of runs, with a name that tells it from the others."""

    label: str
    result: GroupResult
    records: tuple[Record, ...]

    @cached_property
    def stations(self) -> tuple[Station, ...]:
        """Its epochs, over all runs."""
        return course(self.records)


@dataclass(frozen=True)
class MeasuredWork:
    """What may be compared at all: the groups of one workload and schedule.

    Args:
        answer: the group that the verdict is about, and the one that it is compared with.
    """

    title: str
    sides: tuple[MeasuredSide, ...]
    comparison: Comparison
    answer: tuple[GroupResult, GroupResult] | None

    @property
    def labels(self) -> list[str]:
        """Of all sides, in the order of their colours."""
        return [side.label for side in self.sides]

    @property
    def epoch(self) -> str:
        """Of which epoch times and rates are."""
        return which_epoch(side.result for side in self.sides)


@dataclass(frozen=True)
class Chart:
    """One picture.

    Args:
        name: short, such as ``epochs``.
        text: the same in words, for those who don't see it.
        drawing: the definition.
        note: what a reader must know of it.
    """

    name: str
    title: str
    text: str
    drawing: alt.TopLevelMixin
    note: str = ""

    def spec(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Vega-Lite; finite numbers only, since JSON has no others."""
        spec: dict[str, Any] = self.drawing.to_dict(validate=False)  # its parts have been
        spec["description"] = f"{self.title}. {self.text}"
        spec["config"] = dict(config or {})
        return spec


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether it can be drawn."""
    return value is not None and math.isfinite(value)


def data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Rows of values; what is not finite is left out, and so draws nothing."""
    import altair as alt

    return alt.InlineData(values=[{key: _finite(value) for key, value in row.items()} for row in rows])


def colour(labels: Sequence[str], **options: Any) -> alt.Color:
    """A colour a side, the same in every chart of a work."""
    import altair as alt

    return alt.Color("side:N", title=None, scale=alt.Scale(domain=list(labels)), sort=list(labels), **options)


def scale_of(values: Iterable[float | None]) -> alt.Scale:
    """Logarithmic where values differ by much."""
    import altair as alt

    known = [value for value in values if is_known(value)]
    wide = bool(known) and min(known) > 0 and max(known) > _LOG_FROM * min(known)
    return alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)


def epoch_axis(last: int) -> alt.Axis:
    """Whole numbers, each once."""
    import altair as alt

    step = max(1, -(-last // 12))
    return alt.Axis(format="d", values=list(range(0, last + 1, step)))


def said(parts: Iterable[str]) -> str:
    """A sentence of a list, cut where nobody would go on listening."""
    every = list(parts)
    more = f"; and {len(every) - _MOST_SAID} more" if len(every) > _MOST_SAID else ""
    return "; ".join(every[:_MOST_SAID]) + more + "."


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def bars(
    work: MeasuredWork,
    name: str,
    title: str,
    axis: str,
    amounts: Mapping[str, float | None],
    words: Callable[[float | None], str],
    note: str,
) -> Chart:
    """A bar per side, as far as its amount is known, with the amount in ``words`` at its end."""
    import altair as alt

    rows: Rows = [
        {"side": side, "amount": amount, "words": words(amount)} for side, amount in amounts.items() if amount
    ]
    base = alt.Chart(data(rows)).encode(
        alt.X("amount:Q", title=axis, axis=alt.Axis(format="~s")), alt.Y("side:N", title=None, sort=work.labels)
    )
    drawn = base.mark_bar().encode(color=colour(work.labels, legend=None), tooltip=["side:N", "words:N"])
    figures = base.mark_text(align="left", dx=5).encode(text="words:N")
    return Chart(
        name=name,
        title=title,
        text="Bars: " + said(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(drawn, figures).properties(width="container", height=30 * len(rows)),
        note=note,
    )
