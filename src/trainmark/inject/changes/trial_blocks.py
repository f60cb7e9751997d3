"""Durations of trials within one process."""

from __future__ import annotations

UNTIMED_STEPS = 2
"""First steps of a block, which are not timed: something may be prepared in them."""
FEWEST_STEPS = 3
"""Minimum number of timed steps in a block."""
BLOCK_SECONDS = 0.25
"""Minimum duration of the timed steps of a block, in seconds."""
PASSES = 3
"""How many times each change is tried, if there is time."""


def seconds_of_block(step_seconds: float) -> float:
    """Return how long a block takes."""
    return UNTIMED_STEPS * step_seconds + max(BLOCK_SECONDS, FEWEST_STEPS * step_seconds)
