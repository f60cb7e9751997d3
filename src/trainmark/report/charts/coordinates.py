"""Trials of a sweep as lines through parallel axes: one for each hyper-parameter, and the test accuracy at the end.

Inselberg 1985: a point of many dimensions is a line that crosses every axis at its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from trainmark import units
from trainmark.analysis.sweep import Sweep, TrialResult, Value
from trainmark.report.charts.chart import Chart, Rows, data, is_known, said

ACCURACY = "test accuracy"
_HEIGHT = 320
_MOST_LABELS = 10
_TICKS = 5
_FAINTEST, _SPREAD = 0.25, 0.09
_SMALLEST_ERROR = 1e-4
"""One of 10,000 test examples: none wrong has no logarithm."""


def coordinates(sweep: Sweep) -> Chart | None:
    """A line a trial; None where fewer than two were finished."""
    import altair as alt

    finished = [trial for trial in sweep.trials if trial.outcome == "ok" and is_known(trial.test_accuracy)]
    if len(finished) < 2:
        return None
    names = [*sweep.grid, ACCURACY]
    lines = [row for rank, trial in enumerate(finished) for row in _line(sweep, trial, rank, finished)]
    labels = [*_labels(sweep), *_ticks(finished)]
    x = alt.X(
        "axis:N",
        title=None,
        sort=names,
        scale=alt.Scale(type="point", padding=0.35),
        axis=alt.Axis(orient="top", labelAngle=0, labelFontWeight=600, domain=False, ticks=False, labelPadding=12),
    )
    y = alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[-0.03, 1.03]))
    ends = [{"axis": name, "place": 0.0, "top": 1.0} for name in names]
    rules = alt.Chart(data(ends)).mark_rule().encode(x, y, y2="top:Q")
    which = alt.Color("which:N", legend=None, scale=alt.Scale(domain=["others", "best"]))
    tooltip = ["trial:N", "values:N", alt.Tooltip("accuracy:N", title=ACCURACY)]

    def strokes(which_ones: str, width: float) -> alt.Chart:
        return (
            alt.Chart(data(row for row in lines if row["which"] == which_ones))
            .mark_line(interpolate="monotone", strokeWidth=width)
            .encode(
                x,
                y,
                color=which,
                detail="trial:N",
                opacity=alt.Opacity("strength:Q", scale=None, legend=None),
                tooltip=tooltip,
            )
        )

    words = [
        alt.Chart(data(each for each in labels if (each["axis"] == names[0]) == outside))
        .mark_text(align="right" if outside else "left", dx=-7 if outside else 7, fontSize=11, **halo)
        .encode(x, y, text="label:N")
        for outside in (True, False)  # on the first axis to the left, where no line is
        for halo in ({"style": "halo"}, {})  # lines end a little before the words
    ]
    left_out = len(sweep.trials) - len(finished)
    missing = f" {units.many(left_out, 'trial')} without a result left out." if left_out else ""
    return Chart(
        name="coordinates",
        title="Trials through their hyper-parameters",
        text="Lines, best first: "
        + said(f"trial {each.trial}, {_values(each)}, {units.percent(each.test_accuracy)}" for each in finished),
        drawing=alt.layer(rules, strokes("others", 2.0), strokes("best", 3.5), *words).properties(
            width="container", height=_HEIGHT
        ),
        note="A line a trial, the stronger the better its rank; the best in another colour. Lines that share a value "
        f"are set apart a little, the better above; the axis of the accuracy is logarithmic in the error.{missing}",
    )


def _line(sweep: Sweep, trial: TrialResult, rank: int, finished: Sequence[TrialResult]) -> Rows:
    """Where the line of ``trial`` crosses each axis."""
    share = 1 - rank / (len(finished) - 1)
    base = {
        "trial": trial.trial,
        "which": "best" if trial.trial == sweep.best else "others",
        "strength": 1.0 if trial.trial == sweep.best else _FAINTEST + (0.85 - _FAINTEST) * share**2,
        "values": _values(trial),
        "accuracy": units.percent(trial.test_accuracy),
    }
    crossings: Rows = []
    for key, values in sweep.grid.items():
        if key in trial.values:
            apart = _SPREAD / len(values) * (2 * share - 1)
            crossings.append({**base, "axis": key, "place": _place(values, trial.values[key]) + apart})
    crossings.append({**base, "axis": ACCURACY, "place": _height(trial.test_accuracy, finished)})
    return crossings


def _place(values: Sequence[Value], value: Value) -> float:
    """Values stand in even steps, whatever they are: a learning rate's are a grid, and no scale of its own is known."""
    steps = len(values) - 1
    return values.index(value) / steps if steps else 0.5


def _labels(sweep: Sweep) -> Iterator[Mapping[str, object]]:
    best = sweep.trials[0].values
    for key, values in sweep.grid.items():
        every = -(-len(values) // _MOST_LABELS)
        for index, value in enumerate(values):
            if index % every == 0 or value == best.get(key):
                yield {"axis": key, "place": _place(values, value), "label": str(value)}


def _ticks(finished: Sequence[TrialResult]) -> Iterator[Mapping[str, object]]:
    low, high = _range(finished)
    digits = 1 if _error(low) > 2 * _error(high) else 2
    for step in range(_TICKS if high > low else 1):
        share = step / (_TICKS - 1)
        accuracy = 1 - _error(low) * (_error(high) / _error(low)) ** share
        yield {"axis": ACCURACY, "place": share, "label": units.percent(accuracy, digits)}


def _height(accuracy: float | None, finished: Sequence[TrialResult]) -> float:
    """The error's logarithm decides: from 97 to 98 % is as far as from 70 to 80 %."""
    low, high = _range(finished)
    if accuracy is None or high == low:
        return 0.0
    return math.log(_error(low) / _error(accuracy)) / math.log(_error(low) / _error(high))


def _error(accuracy: float) -> float:
    return max(1 - accuracy, _SMALLEST_ERROR)


def _range(finished: Sequence[TrialResult]) -> tuple[float, float]:
    known = [trial.test_accuracy for trial in finished if trial.test_accuracy is not None]
    return min(known), max(known)


def _values(trial: TrialResult) -> str:
    return " ".join(f"{key} {value}" for key, value in trial.values.items())
