"""A sentence about steps that take longer and longer."""

from __future__ import annotations

from trainmark import units
from trainmark.record.growth import Growth

_LATER = 10
"""The sentence looks ahead to this many times as many steps as were seen."""


def growth_sentence(found: Growth, place: str | None = None, planned: int | None = None) -> str:
    """Return by how much steps grow, and how long one will take later.

    Args:
        found: the growth.
        place: the line that most of it is due to, if it is known.
        planned: number of steps of the whole training, if it is known.
    """
    where = "" if place is None else f" Most of this is due to {place}."
    later = _LATER * found.last_step
    end = ""
    if planned is not None and planned > found.last_step:
        end = f"; {units.seconds(found.seconds_at(planned))} in its last step, number {planned:,}"
    return (
        f"On average, each step takes {units.seconds(found.each_seconds)} longer than the one "
        "before: "
        f"{units.seconds(found.first_seconds)} at the start, "
        f"{units.seconds(found.seconds_at(found.last_step))} after {found.last_step:,.0f} steps, "
        f"and about {units.seconds(found.seconds_at(later))} after {later:,.0f} if this goes on"
        f"{end}.{where}"
    )
