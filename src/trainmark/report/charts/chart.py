"""A chart: the drawing and its description."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from trainmark.analysis.learning_curve import EpochSummary, learning_curve
from trainmark.analysis.results import Comparison, GroupResult
from trainmark.record.record import Record
from trainmark.report.length import which_epoch
from trainmark.report.printable import printable

if TYPE_CHECKING:
    import altair as alt

HEIGHT = 260
"""Height of a plot, in pixels."""
FEWEST_SIDES = 2
"""Fewest sides that are worth a chart that compares sides."""
_MOST_SAID = 8
"""Maximum number of parts that the description of a chart lists."""
_ROOM = 1.35
"""Length of an axis relative to its longest bar, so that the label fits."""
_LOG_FROM = 20.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class MeasuredSide:
    """One group of runs with a unique label."""

    label: str
    result: GroupResult
    records: tuple[Record, ...]

    @cached_property
    def summaries(self) -> tuple[EpochSummary, ...]:
        """Its epochs, summarised over all runs."""
        return learning_curve(self.records)


@dataclass(frozen=True)
class MeasuredWork:
    """The groups of one workload and schedule, which can be compared.

    Args:
        answer: the group that the verdict is about, and the group it is compared with.
    """

    title: str
    sides: tuple[MeasuredSide, ...]
    comparison: Comparison
    answer: tuple[GroupResult, GroupResult] | None

    @property
    def labels(self) -> list[str]:
        """The labels of all sides, in the order of their colours."""
        return [side.label for side in self.sides]

    @property
    def epoch(self) -> str:
        """The kind of epoch that times and rates refer to."""
        return which_epoch(side.result for side in self.sides)


@dataclass(frozen=True)
class Chart:
    """One chart.

    Args:
        name: short name, such as ``epochs``.
        text: description, for readers who can't see the chart.
        drawing: the Altair chart.
        points: number of values on its main axis.
        note: what a reader must know to interpret it.
        fewest: fewest points that are worth a chart: with fewer, the table says as much. Bars and
            speed-ups compare sides, for which :data:`FEWEST_SIDES` is enough.
        height: height of the plot, in pixels.
    """

    name: str
    title: str
    text: str
    drawing: alt.TopLevelMixin
    points: int
    note: str = ""
    fewest: int = 3
    height: int = HEIGHT

    def described(self, **properties: Any) -> alt.TopLevelMixin:
        """Return the drawing with its description, height and these properties of Vega-Lite."""
        described = printable(f"{self.title}. {self.text}")
        return self.drawing.properties(description=described, height=self.height, **properties)

    def spec(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, without a theme.

        It has finite numbers only, since JSON has no others.
        """
        # Altair validated the parts when they were made.
        spec: dict[str, Any] = self.described(width="container").to_dict(validate=False)
        del spec["$schema"], spec["config"]
        return spec


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether ``value`` can be drawn."""
    return value is not None and math.isfinite(value)


def data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Return the rows as inline data.

    Values that are not finite become null and are not drawn; control characters in texts, which end
    the converter's whole process, are replaced.
    """
    import altair as alt

    return alt.InlineData(
        values=[{key: _drawable(value) for key, value in row.items()} for row in rows]
    )


def colour(labels: Sequence[str], **options: Any) -> alt.Color:
    """Return the colour encoding: one colour per side, the same in every chart of a workload."""
    import altair as alt

    return alt.Color(
        "side:N", title=None, scale=alt.Scale(domain=list(labels)), sort=list(labels), **options
    )


def scale_of(values: Iterable[float | None]) -> alt.Scale:
    """Return a scale, logarithmic if the values span a wide range."""
    import altair as alt

    known = [value for value in values if is_known(value)]
    wide = bool(known) and min(known) > 0 and max(known) > _LOG_FROM * min(known)
    return alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)


def epoch_axis(last: int) -> alt.Axis:
    """Return an axis with whole numbers, each at most once."""
    import altair as alt

    step = max(1, -(-last // 12))
    return alt.Axis(format="d", values=list(range(0, last + 1, step)))


def joined(parts: Iterable[str]) -> str:
    """Join the parts into a sentence, truncated after a few."""
    every = list(parts)
    more = f"; and {len(every) - _MOST_SAID} more" if len(every) > _MOST_SAID else ""
    return "; ".join(every[:_MOST_SAID]) + more + "."


def _drawable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def bars(
    work: MeasuredWork,
    name: str,
    title: str,
    axis: str,
    amounts: Mapping[str, float | None],
    words: Callable[[float | None], str],
    note: str,
) -> Chart:
    """Return a chart with a bar per side whose amount is known, labelled with its words."""
    import altair as alt

    rows: Rows = [
        {"side": side, "amount": amount, "words": words(amount)}
        for side, amount in amounts.items()
        if is_known(amount) and amount > 0
    ]
    longest = max((row["amount"] for row in rows), default=1.0)
    room = alt.Scale(domain=[0.0, _ROOM * longest], nice=False)
    x = alt.X("amount:Q", title=axis, axis=alt.Axis(format="~s", tickCount=5), scale=room)
    base = alt.Chart(data(rows)).encode(x, alt.Y("side:N", title=None, sort=work.labels))
    drawn = base.mark_bar().encode(
        color=colour(work.labels, legend=None), tooltip=["side:N", "words:N"]
    )
    figures = base.mark_text(align="left", dx=5).encode(text="words:N")
    return Chart(
        name=name,
        title=title,
        text="Bars: " + joined(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(drawn, figures),
        points=len(rows),
        note=note,
        fewest=FEWEST_SIDES,
        height=30 * len(rows),
    )
