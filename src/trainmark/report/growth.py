"""Sentences about steps that take longer and longer, or more and more memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainmark import units
from trainmark.record.growth import Growth, growth_of, memory_growth_of
from trainmark.record.observed import Observed

_LATER = 10
"""The sentence looks ahead to this many times as many steps as were seen."""
_MEMORY_OF = {
    "process": "The private memory of the training process",
    "device": "The memory allocated on the device",
}


def growth_sentences(seen: Observed, last: int | None = None) -> Iterator[str]:
    """Yield by how much steps and memory grow.

    Args:
        seen: what was observed.
        last: number of the last step of the whole training, if it is known from elsewhere.
    """
    last = seen.planned_steps or last
    grows = growth_of(seen)
    if grows is not None:
        yield growth_sentence(grows, last=last)
    yield from memory_sentences(memory_growth_of(seen), last)


def growth_sentence(found: Growth, place: str | None = None, last: int | None = None) -> str:
    """Return by how much steps grow, and how long one will take later.

    Args:
        found: the growth of the duration.
        place: the line that most of it is due to, if it is known.
        last: number of the last step of the whole training, if it is known.
    """
    where = "" if place is None else f" Most of this is due to {place}."
    return (
        f"On average, each step takes {units.seconds(found.each)} longer than the one before: "
        f"{_course(found, units.seconds, last)}.{where}"
    )


def memory_sentences(growths: Mapping[str, Growth], last: int | None = None) -> Iterator[str]:
    """Yield by how much each memory grows, and how large it will be later.

    Args:
        growths: by whose memory it is: ``process`` or ``device``.
        last: number of the last step of the whole training, if it is known.
    """
    for name, found in growths.items():
        yield (
            f"{_MEMORY_OF[name]} grows by {units.bytes_(found.each)} with each step: "
            f"{_course(found, units.bytes_, last)}."
        )


def _course(found: Growth, shown: Callable[[float], str], last: int | None) -> str:
    """Return how much it is at the start, now, and later."""
    later = _LATER * found.last_step
    ahead = [f"about {shown(found.at(later))} after {later:,.0f}"]
    if last is not None and last > found.last_step:
        end = f"about {shown(found.at(last))} in the last step, number {last:,}"
        ahead = [end] if later >= last else [*ahead, end]
    return (
        f"{shown(found.first)} at the start, {shown(found.at(found.last_step))} after "
        f"{found.last_step:,.0f} steps, and {', '.join(ahead)}, if this goes on"
    )
