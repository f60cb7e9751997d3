"""What training took of energy and money."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainmark import units
from trainmark.report.charts.chart import Chart, Rows, Work, colour, data, is_known, said


def costs(work: Work) -> Iterator[Chart]:
    """For a million training examples, as far as it is known."""
    energy = {side.label: side.result.cost.joules_per_million_samples for side in work.sides}
    money = {side.label: side.result.cost.money_per_million_samples for side in work.sides}
    if any(is_known(each) for each in energy.values()):
        sources = {side.result.cost.source for side in work.sides if side.result.cost.source}
        title = "Energy for a million training examples"
        yield _bars(
            work,
            "energy",
            title,
            "joules",
            energy,
            units.joules,
            f"Of training epochs alone, {', '.join(sorted(sources))}.",
        )
    if any(is_known(each) for each in money.values()):
        title = "Cost of a million training examples"
        note = "Of training epochs alone, at the price that was given."
        yield _bars(work, "money", title, "in what the price was given in", money, _money, note)


def _money(amount: float | None) -> str:
    return units.MISSING if amount is None else units.significant(amount)


def _bars(
    work: Work,
    name: str,
    title: str,
    axis: str,
    amounts: Mapping[str, float | None],
    words: Callable[[float | None], str],
    note: str,
) -> Chart:
    import altair as alt

    rows: Rows = [
        {"side": side, "amount": amount, "words": words(amount)} for side, amount in amounts.items() if amount
    ]
    base = alt.Chart(data(rows)).encode(
        alt.X("amount:Q", title=axis, axis=alt.Axis(format="~s")), alt.Y("side:N", title=None, sort=work.labels)
    )
    bars = base.mark_bar().encode(color=colour(work.labels, legend=None), tooltip=["side:N", "words:N"])
    figures = base.mark_text(align="left", dx=5).encode(text="words:N")
    return Chart(
        name=name,
        title=title,
        text="Bars: " + said(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(bars, figures).properties(width="container", height=30 * len(rows)),
        note=note,
    )
