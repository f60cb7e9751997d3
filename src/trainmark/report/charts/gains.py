"""Chart of the speed-ups of changes to a user's script."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.changes import Finding
from trainmark.report.changes_table import times
from trainmark.report.charts.chart import Chart, Rows, data, joined

_WORDS = {"change": "change", "diagnosis": "diagnosis", "learning": "affects learning"}


def gains(findings: Sequence[Finding]) -> Chart:
    """Return a bar for each change whose gain is known, from 1, with its interval."""
    import altair as alt

    rows: Rows = [
        {
            "change": each.change,
            "kind": "harms learning" if each.harms else _WORDS[each.kind],
            "ratio": each.speedup.value,
            "low": each.speedup.low,
            "high": each.speedup.high,
            "one": 1.0,
            "words": times(each),
        }
        for each in findings
        if each.promises
    ]
    top = max([1.2, *(row["high"] or row["ratio"] for row in rows)])
    bottom = min([0.9, *(row["low"] or row["ratio"] for row in rows)])
    scale = alt.Scale(type="log", domain=[0.9 * bottom, 1.6 * top], nice=False)
    names = alt.Y("change:N", title=None, sort=[row["change"] for row in rows])
    base = alt.Chart(data(rows)).encode(names)
    ends = alt.X("ratio:Q", title="speed-up over the unchanged script", scale=scale)
    intervals = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    return Chart(
        name="gains",
        title="Speed-up of each change",
        text="Bars: " + joined(f"{row['change']} {row['words']}" for row in rows),
        drawing=alt.layer(
            base.mark_bar(opacity=0.75).encode(
                ends, x2="one:Q", color=alt.Color("kind:N", title=None)
            ),
            intervals.encode(alt.X("low:Q", scale=scale), x2="high:Q"),
            base.mark_text(align="left", dx=6)
            .encode(alt.X("label:Q", scale=scale), text="words:N")
            .transform_calculate(label="max(datum.high || datum.ratio, 1)"),
        ),
        points=len(rows),
        note="Each change alone against the unchanged script, interleaved; above 1 is faster.",
        height=30 * len(rows),
    )
