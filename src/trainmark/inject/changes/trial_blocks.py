"""How long changes are tried that are switched between the steps of one process."""

from __future__ import annotations

UNTIMED_STEPS = 2
"""First steps of a block, which are not timed: something may be prepared in them."""
FEWEST_STEPS = 3
"""Timed steps of a block at least."""
BLOCK_SECONDS = 0.25
"""Seconds of its timed steps at least."""
PASSES = 3
"""How many times each change is tried, if there is time."""


def seconds_of_block(step_seconds: float) -> float:
    """Return how long a block takes."""
    return UNTIMED_STEPS * step_seconds + max(BLOCK_SECONDS, FEWEST_STEPS * step_seconds)
