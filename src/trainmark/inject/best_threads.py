"""Find the number of CPU threads with which the script's steps are fastest.

It is used next to an accelerator.

trainmark writes the numbers to try into a file before the first turn of the process. The search
trains the script's own next steps, so the training stays the same; only these steps may be slower,
and they are not timed.

The algorithm is that of ``execute/worker/threads.py``: two passes over all numbers, the second in
reverse order, so that a steady drift of the machine cancels out. The framework's own choice comes
first, then many threads before few, since many threads matter most if steps are long.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

FILE = "threads"
"""Name of the file in the observer's folder with the numbers to try; a single number is set without
a search."""
VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_THREAD_LIMIT",
    "MKL_NUM_THREADS",
    "MKL_DOMAIN_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Environment variables by which users fix the number of threads."""
SLICE_SECONDS = 0.1
"""Least duration of the timed steps with one number of threads, in each of the two passes."""
FEWEST_STEPS = 2
"""Fewest timed steps with one number of threads, in each pass."""
MOST_SECONDS = 4.0
"""Seconds of steps after which the search ends. It has a result if every number was timed by
then."""
LONGEST_STEP_SECONDS = 0.5
"""Duration of a step above which nothing is tried: two passes over several numbers would not fit
into the time."""
MOST_SHARE = 0.25
"""Share of the steps of a training of known length that the search may take; the rest is for
slices."""


class Settable:
    """The number of CPU threads of a framework.

    Each framework that can change it in a running process has a subclass.

    Attributes:
        fixed: why the number must stay as it is; empty if it may change.
    """

    fixed = ""

    def get(self) -> int:
        """Return the number of threads in use."""
        raise NotImplementedError

    def set(self, number: int) -> None:
        """Use another number from the next step on."""
        raise NotImplementedError


def wanted(folder: str) -> list[int]:
    """Return the numbers of threads that trainmark wants this process to try.

    It is a single number if the process should use only that.
    """
    try:
        with open(os.path.join(folder, FILE)) as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def usable_cores() -> int:
    """Return the number of cores that this process may use, which ``taskset`` may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_fixed_by_variable() -> bool:
    """Whether the user has fixed the number of threads by an environment variable."""
    return any(os.environ.get(name) for name in VARIABLES)


class Search:
    """A search in progress; :meth:`stepped` moves it on.

    Args:
        settable: the threads of the framework.
        numbers: numbers of threads to try besides the framework's own choice; those above the cores
            are left out.
        most_steps: number of steps after which the search gives up; None is no limit.

    Attributes:
        over: whether the search has ended.
        steps: number of steps that it has used.
        result: the numbers ``chosen`` and ``default``, and ``step_seconds`` by number; None without
            a result.
    """

    def __init__(
        self, settable: Settable, numbers: list[int], most_steps: int | None = None
    ) -> None:
        self._settable = settable
        self._default = settable.get()
        usable = [number for number in numbers if number <= usable_cores()]
        self._order = list(dict.fromkeys([self._default, *sorted(usable, reverse=True)]))
        self._most_steps = most_steps
        self._found: dict[int, list[float]] = {}
        self._spent = 0.0
        self.over = False
        self.steps = 0
        self.result: dict[str, Any] | None = None
        self._passes = self._both_passes()
        next(self._passes)

    def stepped(self, seconds: float) -> None:
        """Take in the duration of a step, and set the number of threads of the next one."""
        self.steps += 1
        self._spent += seconds
        if self._settable.fixed:  # the script has set its own number meanwhile, which stays
            self.over = True
            return
        is_long = self.steps == 1 and seconds > LONGEST_STEP_SECONDS
        is_too_short = self._most_steps is not None and self.steps > self._most_steps
        if is_long or is_too_short:
            self._end(self._default)
            return
        try:
            self._passes.send(seconds)
            is_complete = False
        except StopIteration:
            is_complete = True
        if is_complete or self._spent > MOST_SECONDS:
            self._choose()

    def _both_passes(self) -> Generator[None, float, None]:
        """Time steps with each number of threads, twice; is sent the duration of each step."""
        yield  # this step uses the framework's own choice, and shows how long steps are
        for number in [*self._order, *reversed(self._order)]:
            self._settable.set(number)
            yield  # this step does not count, since threads start in it
            done = 0
            seconds = 0.0
            while done < FEWEST_STEPS or seconds < SLICE_SECONDS:
                seconds += yield
                done += 1
            self._found.setdefault(number, []).append(seconds / done)

    def _choose(self) -> None:
        """End with the fastest number, or with the framework's own if not all were timed."""
        if len(self._found) < len(self._order):
            self._end(self._default)
            return
        seconds = {number: sum(values) / len(values) for number, values in self._found.items()}
        chosen = min(seconds, key=seconds.__getitem__)
        by_number = {str(number): seconds[number] for number in sorted(seconds)}
        self.result = {"chosen": chosen, "default": self._default, "step_seconds": by_number}
        self._end(chosen)

    def _end(self, number: int) -> None:
        """Go on with this number of threads."""
        self._settable.set(number)
        self.over = True
