"""Chart of where the time of a step goes, from `trainmark explain --json`."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.report.charts.chart import Chart, Rows, data, joined
from trainmark.report.explained import Explained


def breakdown(explained: Sequence[Explained]) -> Chart | None:
    """Return a stacked bar per explained step, one part per cause; None without any."""
    import altair as alt

    titles = [each.title for each in explained]
    names = [
        title if titles.count(title) == 1 else f"{title} ({number})"
        for number, title in enumerate(titles, 1)
    ]
    named = list(zip(names, explained, strict=True))
    rows: Rows = []
    for name, each in named:
        rows += _parts(name, each)
    if not rows:
        return None
    warnings = "".join(
        f" Caveats of {name}: {', '.join(each.caveats)}." for name, each in named if each.caveats
    )
    causes = list(dict.fromkeys(row["cause"] for row in rows))
    bars = alt.Chart(data(row for row in rows if row["share"] > 0)).mark_bar()
    x = alt.X("share:Q", title="share of a step", axis=alt.Axis(format="%"))
    y = alt.Y("step:N", title=None, sort=names)
    colour = alt.Color("cause:N", title=None, scale=alt.Scale(domain=causes))
    return Chart(
        name="breakdown",
        title="Where the time of a step goes",
        text="Bars: " + joined(f"{row['step']}, {row['cause']} {row['words']}" for row in rows),
        drawing=bars.encode(
            x, y, color=colour, order="order:Q", tooltip=["step:N", "cause:N", "words:N"]
        ),
        points=len(rows),
        height=44 * len({row["step"] for row in rows}),
        note="Measured by removing one component at a time. Negative shares are listed in the "
        "description, not drawn: they are noise, or causes that take longer alone than together."
        f"{warnings}",
    )


def _parts(name: str, explained: Explained) -> Rows:
    return [
        {
            "step": name,
            "cause": part.cause,
            "share": part.share,
            "words": units.percent(part.share, 1),
            "order": order,
        }
        for order, part in enumerate(explained.parts)
    ]
