"""A table of what was observed of a command from outside."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.outside import Observation
from trainmark.report.table import Field, Table, table_of, text_of, toned


def outside_table(title: str, found: tuple[Observation, ...]) -> Table:
    """Return a table with a row per observation."""
    seen = any(each.what == "data wait" for each in found)
    more = "" if seen else "; hook.batches shows the time spent waiting for data"
    return table_of(
        found,
        (
            Field("observed", toned("what", "strong")),
            Field("value", _value, "right"),
            Field("meaning", text_of("words")),
        ),
        title=title,
        conditions=(f"measured from outside, so step time can't be broken down{more}",),
        notes=() if found else (_NOTHING,),
    )


_NOTHING = "No observations: the command ended too soon, or failed immediately."


def _value(observation: Observation) -> str:
    if observation.unit == "share":
        return units.percent(observation.value, 0)
    return units.ratio(observation.value) if observation.unit == "times" else observation.unit
