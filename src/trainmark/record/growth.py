"""Steps that take longer the further a training is.

"It gets slower with every step" has causes such as a list, a tensor or a graph that grows with each
step. A mean over all steps says nothing then.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmark.record.observed import Observed

FEWEST_STEPS = 300
"""Fewest steps in which a growth is looked for."""
_FEWEST_PARTS = 24
_FIGURES = 3
"""Number of figures of a part: number, seconds and amount of a step."""
_WARM_UP = 0.05
"""Share of the training, from its start, that is left out: caches and compilers warm up there."""
_LEAST_GROWTH = 0.15
"""Least growth over the training, as a share of a step at its start."""
_LEAST_SHARE_OF_A_THIRD = 0.2
"""Least share of the whole growth between the middles of two neighbouring thirds. A clock that
falls once, or another program that starts, changes the duration once."""
_STRETCHES = 16
"""The training is taken in this many stretches; in most of them, steps must grow."""
_LEAST_SHARE_OF_A_STRETCH = 0.4
"""Least growth of the middle one of all stretches, as a share of the trend. In stairs, as of a
network that gets more layers now and then, most stretches have none."""
_LEAST_TREND = 0.7
"""Least rank correlation (Kendall's tau) between number and duration of steps."""
_SAME_AMOUNT = 1.05
"""Largest ratio between the amounts of the last and the first third of a training that is still
the same. Longer sequences take longer, which is no growth."""
_MOST_OF_IT = 0.5
"""Share of the growth above which a single line explains it."""


@dataclass(frozen=True)
class Growth:
    """A duration of a step that grows with the number of the step.

    Args:
        first_step: number of the step where the trend begins.
        last_step: number of the last step that was seen.
        first_seconds: duration of a step at the start, by the trend.
        each_seconds: by how much each step is longer than the one before.
    """

    first_step: float
    last_step: float
    first_seconds: float
    each_seconds: float

    def seconds_at(self, step: float) -> float:
        """Return how long that step takes, if the trend goes on."""
        return self.first_seconds + self.each_seconds * (step - self.first_step)


def growing_line(
    found: Growth, early: Mapping[str, float], late: Mapping[str, float]
) -> str | None:
    """Return the line that most of a growth is due to; None if there is no such line.

    Args:
        found: the growth.
        early: share of each line in the first third of the time, taken for that of the steps.
        late: the same in the last third.
    """
    sixth = (found.last_step - found.first_step) / 6
    before = found.seconds_at(found.first_step + sixth)
    after = found.seconds_at(found.last_step - sixth)
    longer = {line: share * after - early.get(line, 0.0) * before for line, share in late.items()}
    line = max(longer, key=lambda each: longer[each], default=None)
    return line if line and longer[line] > _MOST_OF_IT * (after - before) else None


def growth_of(seen: Observed) -> Growth | None:
    """Return the growth of the duration of a training's steps, if there was a single one."""
    return growth(seen.step_times) if len(seen.training_starts) == 1 else None


def growth(parts: Sequence[Sequence[float]]) -> Growth | None:
    """Return the growth of the duration of steps; None if there is none that is clear.

    Args:
        parts: number, seconds and amount (elements or examples) of the shortest step of each part
            of a training, in their order; at most a few hundred.
    """
    if any(len(part) != _FIGURES for part in parts):
        return None
    if len(parts) < _FEWEST_PARTS or parts[-1][0] - parts[0][0] < FEWEST_STEPS:
        return None
    if any(later[0] <= earlier[0] for earlier, later in itertools.pairwise(parts)):
        return None  # whoever reported them did not count steps
    kept = parts[max(int(_WARM_UP * len(parts)), 1) :]
    third = len(kept) // 3
    thirds = kept[:third], kept[third:-third], kept[-third:]
    amounts = [statistics.fmean(part[2] for part in each) for each in thirds]
    if amounts[0] and not 1 / _SAME_AMOUNT <= amounts[2] / amounts[0] <= _SAME_AMOUNT:
        return None
    medians = [statistics.median(part[1] for part in each) for each in thirds]
    steps = [part[0] for part in kept]
    seconds = [part[1] for part in kept]
    each_seconds = _slope(steps, seconds)
    first_seconds = statistics.median(
        duration - each_seconds * (step - steps[0])
        for step, duration in zip(steps, seconds, strict=True)
    )
    # What begins to grow after some steps has a trend that begins below nothing.
    first_seconds = max(first_seconds, min(seconds))
    whole = each_seconds * (steps[-1] - steps[0])
    if whole < _LEAST_GROWTH * first_seconds:
        return None
    between = (medians[1] - medians[0], medians[2] - medians[1])
    if min(between) < _LEAST_SHARE_OF_A_THIRD * whole or _trend(seconds) < _LEAST_TREND:
        return None
    if _middle_slope(steps, seconds) < _LEAST_SHARE_OF_A_STRETCH * each_seconds:
        return None
    return Growth(steps[0], steps[-1], first_seconds, each_seconds)


def _slope(steps: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen)."""
    slopes = []
    for later in range(1, len(steps)):
        for earlier in range(later):
            slopes.append((seconds[later] - seconds[earlier]) / (steps[later] - steps[earlier]))
    return statistics.median(slopes)


def _middle_slope(steps: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the median of the slopes over one stretch of the training."""
    length = len(steps) // _STRETCHES
    return statistics.median(
        (seconds[at + length] - seconds[at]) / (steps[at + length] - steps[at])
        for at in range(len(steps) - length)
    )


def _trend(seconds: Sequence[float]) -> float:
    """Return Kendall's tau between the order and the duration."""
    agree = 0
    pairs = 0
    for later in range(1, len(seconds)):
        for earlier in range(later):
            agree += (seconds[later] > seconds[earlier]) - (seconds[later] < seconds[earlier])
            pairs += 1
    return agree / pairs
