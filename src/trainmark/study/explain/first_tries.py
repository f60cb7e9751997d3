"""Which changes are first tried within one process, and what is concluded from it.

If a script starts slowly, a process for each change takes long. Some changes can be turned on
and off between two steps, so one process can try them all. This only ranks them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmark.analysis.changes import SMALLEST_GAIN
from trainmark.analysis.experiments import NO_GAIN, SWITCHABLE
from trainmark.inject.changes.trial_blocks import seconds_of_block
from trainmark.record.observed import Observed

_FEWEST = 3
"""Fewest changes for which such a process is started."""
_CLEAR = 2
"""Trials without a gain after which a change gets no process."""
_CLEAR_GAIN = 1.1
"""Speed-up from which a change is measured before those that can't be tried like this."""


def switchable(planned: Iterable[str], seen: Observed, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the changes that can be turned on and off between two steps of a script.

    Empty if there are fewer than three.
    """
    if seen.framework != "torch" or (seen.ranks or 1) > 1:
        return ()
    names = [each for each in planned if each.partition("=")[0] in SWITCHABLE]
    if facts.get("workers") != 0 and "same-batch" in names:
        # Workers load ahead, and a function that repeats its batch can't be switched back.
        names.remove("same-batch")
    return tuple(names) if len(names) >= _FEWEST else ()


def seconds_of(names: Sequence[str], step_seconds: float) -> float:
    """Return how long it takes to try each change once, from the first step on."""
    blocks = 2 * len(names) + 1
    return blocks * seconds_of_block(step_seconds)


def worth_a_process(
    planned: Sequence[str], ratios: Mapping[str, Sequence[float]]
) -> tuple[list[str], dict[str, str]]:
    """Return the changes to measure, the most promising first, and why the others are left out.

    Args:
        planned: all changes, in their order so far.
        ratios: the speed-ups of each change that was tried, one for each time.
    """
    left_out = {
        name: f"{NO_GAIN}: {' and '.join(f'{each:.2f}×' for each in tried)}"
        for name, tried in ratios.items()
        if len(tried) >= _CLEAR and max(tried) < SMALLEST_GAIN
    }
    kept = [name for name in planned if name not in left_out]
    gains = {name: statistics.median(each) for name, each in ratios.items() if each}

    def order(name: str) -> tuple[int, float]:
        gain = gains.get(name)
        if gain is None:
            return 1, 0.0
        return (0, -gain) if gain >= _CLEAR_GAIN else (2, -gain)

    return sorted(kept, key=order), left_out
