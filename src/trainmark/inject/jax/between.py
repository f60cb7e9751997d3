"""What happens between two steps of JAX: evaluations that are not jitted, and everything else.

Operations outside of jitted functions run in C. Only the first one of each kind and shape passes
through Python, where it is compiled. If it multiplies weights of the last step with other arrays,
an evaluation goes on, and we keep the line of the script. A later pause between two steps is an
evaluation, too, if it is much longer than usual and ends with a read that was first seen in an
evaluation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..observer import Observer, clock
from ..places import is_users_file, line_of, place_of, users_place
from .calls import weakly
from .queue import Queue

_PRODUCTS = ("dot", "matmul", "einsum", "conv")
"""In the names of operations in which networks apply weights to their input. Sums, such as a moving
average of weights, are none; a part of the weights that is printed is none, either."""
_LONG = 5.0
"""Duration of an evaluation, as a multiple of what usually passes between two steps."""
_MOST_READS = 10
"""Most lines with reads in a report."""
_FEWEST_GAPS = 3
"""Number of times between two steps after which we know what is usual."""
_MOST_GAPS = 100
"""Number of times between two steps over which what is usual is averaged."""


class Between:
    """The time from the end of a step to the next one.

    Args:
        compiling: returns how long JAX has compiled since the last step.

    Attributes:
        seconds: how long all of them took, without evaluations and without compiling.
    """

    def __init__(self, observer: Observer, compiling: Callable[[], float]) -> None:
        self._observer = observer
        self._compiling = compiling
        self._began = 0.0
        self._ended = 0.0
        self._call_seconds = 0.0
        self._weights: list[Callable[[], Any]] = []
        self._loop: list[Any] = []
        self._place = ""
        self._read: set[tuple[Any, int, str]] = set()
        self._reads: Counter[tuple[Any, int, str]] = Counter()
        self._all_read = True
        self._steps = 0
        self._steps_all_read = 0
        self._is_evaluation = False
        self._usual = 0.0
        self._gaps = 0
        self._read_at = 0.0
        self._returned_at = 0.0
        self._is_jitted_evaluation = False
        self._queue = Queue()
        self._places: set[tuple[Any, int]] = set()
        self._usual_places: set[tuple[Any, int]] = set()
        self._of_evaluations: set[tuple[Any, int]] = set()
        self.seconds = 0.0

    def step_begins(self) -> bool:
        """A step is about to be called; return whether an evaluation came before it."""
        now = clock()
        began = self._began
        self._began = 0.0
        self._ended = now
        if began:
            self._steps += 1
            if self._all_read:
                self._steps_all_read += 1
                self._reads.update(self._read)
        has_evaluated = bool(began) and self._gap(began, now)
        self._weights = []
        return has_evaluated

    def step_ended(self, weights: list[Any]) -> None:
        """A step was called, and has returned these weights."""
        if not self._loop:
            self._loop = _codes(sys._getframe(1))
        self._weights = [weakly(each) for each in weights]
        if weights:
            self._queue.added(weights[0], self._ended)
        self._began = clock()
        self._call_seconds = self._began - self._ended
        self._is_evaluation = False
        self._is_jitted_evaluation = False
        self._places = set()
        self._read = set()

    def jitted_evaluation_begins(self) -> None:
        """A jitted function that evaluates is about to be called."""
        self._is_jitted_evaluation = True

    def jitted_evaluation_returned(self) -> None:
        """A jitted function that evaluates has returned."""
        self._returned_at = clock()

    def computes(self, name: str, arrays: list[Any]) -> None:
        """An operation outside of jitted functions is compiled.

        Args:
            name: its name.
            arrays: its operands.
        """
        if not self._began or not any(each in name for each in _PRODUCTS):
            return
        weights = {id(each()) for each in self._weights}
        used = [id(each) in weights for each in arrays]
        if any(used) and not all(used):
            self._is_evaluation = True
            self._place = self._place or self._line(sys._getframe(1))

    def synchronised(self, call: str, seconds: float, frame: FrameType, times: int = 1) -> None:
        """The user's code of ``frame`` has read an array."""
        if self._began:
            place = (frame.f_code, line_of(frame))
            self._places.add(place)
            is_known = self._is_evaluation or place in self._of_evaluations
            if not is_known and self._observer.evaluates_since is None:
                self._queue.was_read(seconds)
            self._read_at = clock()
            if self._evaluates(self._read_at - self._began):
                seconds = 0.0  # the read is a part of the evaluation
            elif self._observer.evaluates_since is None:
                self._read.add((*place, call))
            self._all_read = self._all_read and times == 1  # later, only some are sampled
        self._observer.synchronised(call, seconds, frame, times)

    def _gap(self, began: float, now: float) -> bool:
        """The time between two steps has passed; return whether that was an evaluation."""
        evaluates_since = self._observer.evaluates_since
        if evaluates_since is not None:
            ended = self._end_jitted(evaluates_since, now)
            others = self._compiling()
            self.seconds += max(evaluates_since - began + now - ended - others, 0.0)
            return True
        if self._evaluated(began, now):
            return True
        seconds = max(now - began - self._compiling(), 0.0)
        self.seconds += seconds
        self._gaps += 1
        self._usual += (seconds - self._usual) / min(self._gaps, _MOST_GAPS)
        self._usual_places |= self._places
        return False

    def step_reads(self) -> dict[str, int]:
        """Return the lines that read arrays outside of evaluations, and after how many steps."""
        found = {}
        for (code, line, call), steps in self._reads.most_common(_MOST_READS):
            share = steps / max(self._steps_all_read, 1)
            found[f"{place_of(code.co_filename, line)} {call}"] = round(share * self._steps)
        return found

    def finish(self) -> None:
        """The script ends; the last step may have been followed by an evaluation."""
        began = self._began
        if not began:
            return
        self._began = 0.0
        self._weights = []
        now = clock()
        self._observer.waited_for_steps(max(self._queue.empty_at() - began, 0.0))
        evaluates_since = self._observer.evaluates_since
        if evaluates_since is not None:
            self._end_jitted(evaluates_since, now)
        else:
            self._evaluated(began, now)
        # Python may crash if it ends while something is computed that an observer has seen. To wait
        # compiles an operation, which would be taken for a part of the evaluation.
        self._observer.wait_for_devices()

    def _end_jitted(self, began: float, now: float) -> float:
        """End an evaluation that has begun; return when that was.

        It has ended with the last read of an array, or when the jitted function has returned. What
        follows may be a plot. Steps that are queued are computed first.
        """
        ended = now
        if self._is_jitted_evaluation:
            ended = max(self._read_at, self._returned_at)
            ended = ended if ended > began else now
            self._observer.evaluates_since = min(max(began, self._queue.empty_at()), ended)
        self._observer.evaluated(ended=ended)
        self._queue.is_empty(ended)
        return ended

    def _evaluated(self, began: float, now: float) -> bool:
        """Report an evaluation, if that is what has happened between two steps."""
        ended = self._read_at if self._read_at > began else now
        if not self._evaluates(ended - began):
            return False
        self._of_evaluations |= self._places - self._usual_places
        # Steps that are queued are computed first.
        after = max(self._usual, self._call_seconds)
        start = min(max(began + after, self._queue.empty_at()), ended)
        self.seconds += min(after, start - began) + now - ended
        self._observer.evaluating(start, self._place)
        self._observer.evaluated(ended=ended)
        self._queue.is_empty(ended)
        return True

    def _evaluates(self, seconds: float) -> bool:
        """Whether the time since the last step was an evaluation, if it lasted this long."""
        if not self._is_evaluation and not self._of_evaluations & self._places:
            return False
        seconds -= self._compiling()
        return self._gaps >= _FEWEST_GAPS and seconds > _LONG * self._usual

    def _line(self, frame: FrameType | None) -> str:
        """Return the line, in the function with the loop over steps, that has led to a frame."""
        innermost = users_place(frame) or ""
        while frame is not None:
            if frame.f_code in self._loop:
                return place_of(frame.f_code.co_filename, line_of(frame))
            frame = frame.f_back
        return innermost


def _codes(frame: FrameType | None) -> list[Any]:
    """Return the user's code on the stack, the innermost first."""
    found = []
    while frame is not None:
        if is_users_file(frame.f_code.co_filename):
            found.append(frame.f_code)
        frame = frame.f_back
    return found
