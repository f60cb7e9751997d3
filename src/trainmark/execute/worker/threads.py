"""Find the number of CPU threads with which a step is fastest."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from trainmark.backends.base import EpochPlan, Trainer
from trainmark.backends.threads import ThreadsSettable
from trainmark.execute.protocol.answers import ThreadsTried

SLICE_SECONDS = 0.1
"""Least duration of the timed steps with one number of threads, in each of two passes over all
numbers. The second pass is in reverse order, so that a steady drift of the machine cancels out."""
FEWEST_STEPS = 2
"""Fewest timed steps with one number of threads."""
MOST_SECONDS = 4.0
"""Time after which no further number of threads is tried. The framework's own choice comes first,
then many threads before few, since many threads matter most if steps are long."""
LONGEST_STEP_SECONDS = 0.5
"""Duration of a step above which nothing is tried: two passes over several numbers would not fit
into the time."""


def try_threads(
    trainer: Trainer,
    settable: ThreadsSettable,
    plans: Callable[[], Iterable[EpochPlan]],
    candidates: Sequence[int],
    tick: Callable[[], None],
    clock: Callable[[], float],
) -> ThreadsTried | None:
    """Train some steps with each number of threads, and keep the fastest.

    Args:
        trainer: trains; its weights change.
        settable: the same trainer, whose threads can be set.
        plans: returns the epochs, from the first one on.
        candidates: numbers of threads to try besides the framework's own choice.
        tick: to be called after each step.
        clock: read at synchronised points.

    Returns:
        The seconds of a step with each number of threads that was tried, and the fastest, which is
        set. None if steps take too long to try several.
    """
    default = settable.threads()
    order = list(dict.fromkeys([default, *sorted(candidates, reverse=True)]))
    steps = _endless_steps(trainer, plans, tick)
    began = clock()
    next(steps)
    trainer.synchronize()
    if clock() - began > LONGEST_STEP_SECONDS:
        return None
    found: dict[int, list[float]] = {}
    both_passes = [*order, *reversed(order)]
    for number in both_passes:
        if clock() - began > MOST_SECONDS:
            break
        settable.set_threads(number)
        found.setdefault(number, []).append(_step_seconds(trainer, steps, clock))
    if len(found) < len(order):
        settable.set_threads(default)
        return None
    seconds = {number: statistics.fmean(values) for number, values in found.items()}
    chosen = min(seconds, key=seconds.__getitem__)
    settable.set_threads(chosen)
    return ThreadsTried(chosen, default, sorted(seconds.items()))


def _step_seconds(trainer: Trainer, steps: Iterator[None], clock: Callable[[], float]) -> float:
    """Return the seconds of a step, after an untimed one, in which threads start."""
    next(steps)
    trainer.synchronize()
    start = clock()
    done = 0
    seconds = 0.0
    while done < FEWEST_STEPS or seconds < SLICE_SECONDS:
        next(steps)
        trainer.synchronize()
        done += 1
        seconds = clock() - start
    return seconds / done


def _endless_steps(
    trainer: Trainer, plans: Callable[[], Iterable[EpochPlan]], tick: Callable[[], None]
) -> Iterator[None]:
    """Train one step with each ``next``, over and over through all epochs."""
    while True:
        for plan in plans():
            trainer.begin_epoch(plan)
            for _ in plan.sizes:
                trainer.train(1, tick)
                yield
