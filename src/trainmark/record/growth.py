"""Steps that take longer, or more memory, the further a training is.

"It gets slower with every step" has causes such as a list, a tensor or a graph that grows with each
step. A mean over all steps says nothing then.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

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


FEWEST_STEPS_OF_MEMORY = 100
"""Fewest steps in which a growth of the memory is looked for; it varies less than durations do."""
_LEAST_BYTES = 32 << 20
"""Least growth of the memory over the training; caches of a library take as much."""
_LEAST_SHARE_OF_EARLIER = 0.75
"""Least growth of the memory per step from the second to the last third of a training, as a share
of that from the first to the second. What fills a cache grows less and less."""
_LEAST_SHARE_OF_MEMORY = 0.03
"""Least growth of the memory over the training, as a share of that at its start."""


_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Growth:
    """A duration of a step in seconds, or a memory in bytes, that grows with the steps.

    Args:
        first_step: number of the step where the trend begins.
        last_step: number of the last step that was seen.
        first: duration or memory at the start, by the trend.
        each: by how much it grows from each step to the next.
    """

    first_step: float
    last_step: float
    first: float
    each: float

    @property
    def whole(self) -> float:
        """How much it grew over all steps that were seen."""
        return self.each * (self.last_step - self.first_step)

    def at(self, step: float) -> float:
        """Return the duration of that step, or the memory after it, if the trend goes on."""
        return self.first + self.each * (step - self.first_step)


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
    before = found.at(found.first_step + sixth)
    after = found.at(found.last_step - sixth)
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
    found = _trend([(part[0], part[1]) for part in parts], FEWEST_STEPS)
    if found is None or found.whole < _LEAST_GROWTH * found.first:
        return None
    before, _, after = (
        statistics.fmean(part[2] for part in each) for each in _thirds(_warm(parts))
    )
    is_same = not before or 1 / _SAME_AMOUNT <= after / before <= _SAME_AMOUNT
    return found if is_same else None


def is_growing(seen: Observed) -> bool:
    """Whether the duration of steps or a memory grows."""
    return growth_of(seen) is not None or bool(memory_growth_of(seen))


def memory_growth_of(seen: Observed) -> dict[str, Growth]:
    """Return the growths of memory in a single training, by where it is; empty without any.

    The keys are ``process``, the training process, and ``device``.
    """
    found: dict[str, Growth] = {}
    if len(seen.training_starts) != 1:
        return found
    for number, name in enumerate(("process", "device"), 1):
        rows = [each for each in seen.step_memory if len(each) == _FIGURES]
        known = [(each[0], each[number]) for each in rows]
        grows = memory_growth([(step, size) for step, size in known if step and size is not None])
        if grows is not None:
            found[name] = grows
    return found


def memory_growth(readings: Sequence[tuple[float, float]]) -> Growth | None:
    """Return the growth of the memory of a training; None if there is none that is clear.

    Args:
        readings: number and bytes of some steps, in their order; at most a few hundred.
    """
    found = _trend(readings, FEWEST_STEPS_OF_MEMORY)
    if found is None:
        return None
    least = max(_LEAST_BYTES, _LEAST_SHARE_OF_MEMORY * found.first)
    kept = _warm(readings)
    earlier, later = _between_thirds([value for _, value in kept])
    # Readings are equally far apart in time, so a step that takes longer has more of them.
    earlier_steps, later_steps = _between_thirds([step for step, _ in kept])
    is_steady = later / later_steps >= _LEAST_SHARE_OF_EARLIER * earlier / earlier_steps
    return found if found.whole >= least and is_steady else None


def _warm(parts: Sequence[_Part]) -> Sequence[_Part]:
    """Return the parts after the start of the training."""
    return parts[max(int(_WARM_UP * len(parts)), 1) :]


def _thirds(parts: Sequence[_Part]) -> tuple[Sequence[_Part], Sequence[_Part], Sequence[_Part]]:
    third = len(parts) // 3
    return parts[:third], parts[third:-third], parts[-third:]


def _trend(points: Sequence[tuple[float, float]], fewest_steps: int) -> Growth | None:
    """Return a growth that goes on over a whole training; None if there is none that is clear.

    Args:
        points: numbers of steps, and their durations or memory.
        fewest_steps: fewest steps between the first and the last of them.
    """
    if len(points) < _FEWEST_PARTS or points[-1][0] - points[0][0] < fewest_steps:
        return None
    if any(later[0] <= earlier[0] for earlier, later in itertools.pairwise(points)):
        return None  # whoever reported them did not count steps
    kept = _warm(points)
    steps = [step for step, _ in kept]
    values = [value for _, value in kept]
    each = _slope(steps, values)
    first = statistics.median(
        value - each * (step - steps[0]) for step, value in zip(steps, values, strict=True)
    )
    # What begins to grow after some steps has a trend that begins below nothing.
    found = Growth(steps[0], steps[-1], max(first, min(values)), each)
    if each <= 0 or _agreement(values) < _LEAST_TREND:
        return None
    if min(_between_thirds(values)) < _LEAST_SHARE_OF_A_THIRD * found.whole:
        return None
    if _middle_slope(steps, values) < _LEAST_SHARE_OF_A_STRETCH * each:
        return None
    return found


def _between_thirds(values: Sequence[float]) -> tuple[float, float]:
    """Return how much the median rises from each third to the next one."""
    first, second, last = map(statistics.median, _thirds(values))
    return second - first, last - second


def _slope(steps: Sequence[float], values: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen)."""
    slopes = []
    for later in range(1, len(steps)):
        for earlier in range(later):
            slopes.append((values[later] - values[earlier]) / (steps[later] - steps[earlier]))
    return statistics.median(slopes)


def _middle_slope(steps: Sequence[float], values: Sequence[float]) -> float:
    """Return the median of the slopes over one stretch of the training."""
    length = len(steps) // _STRETCHES
    return statistics.median(
        (values[at + length] - values[at]) / (steps[at + length] - steps[at])
        for at in range(len(steps) - length)
    )


def _agreement(values: Sequence[float]) -> float:
    """Return Kendall's tau between the order and the values."""
    agree = 0
    pairs = 0
    for later in range(1, len(values)):
        for earlier in range(later):
            agree += (values[later] > values[earlier]) - (values[later] < values[earlier])
            pairs += 1
    return agree / pairs
