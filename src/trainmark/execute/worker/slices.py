"""An interleaved training, which computes one slice at a time, when the parent tells it to.

A slice begins with a few untimed steps, in which caches and clocks adapt from the other side. It
ends at the next synchronised point after the requested seconds of timed steps, and may include the
end of an epoch, whose evaluation is not timed. A training that is shorter than a slice starts again
within it, which is not timed either.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Callable
from typing import Any, TypeAlias

from trainmark.execute.protocol.answers import SliceTimed, Waiting
from trainmark.execute.protocol.wire import Message, Send
from trainmark.execute.protocol.worker_commands import StartTraining, Stop, TakeTurn

Turns: TypeAlias = "queue.SimpleQueue[Message]"
"""The parent's messages while a training runs."""
FEWEST_STEPS = 2
"""Fewest timed steps of a slice."""
STEADY = 0.02
"""Largest change of the time of a step between two untimed parts, if the clock is steady."""
LONGEST_RAMP = 2.0
"""Seconds after which a slice is timed even if the time of a step still changes."""
MOST_RESTARTING = 1.0
"""Longest time that restarts of a short training may take in a turn, as a multiple of the seconds
of training that the parent wants; after that, the turn ends with fewer steps. Before this limit, a
training of 20 steps of 0.1 ms took 5 ms to start again, so a slice of 0.5 s took 3 s."""
ESTIMATE_SECONDS = 0.1
"""Seconds of steps from which the time of a step is known well enough to keep a time limit."""
_PART_OF_REST = 0.5
"""Share of the steps that probably fit until the time limit, after which the time is read again."""


def keep_own(own: Any) -> Any:
    """Return a training's own value: what a training in a single process agrees on."""
    return own


def _send_nothing(_: object) -> None:
    pass


def _no_loss() -> None:
    return None


class Enough(Exception):
    """The parent needs no more slices of this training."""


class TrainingStarts(Exception):
    """The slices are over; the training starts from its initial weights."""


class OutOfTime(Exception):
    """The time limit has ended the training at a step."""


class Slices:
    """Decides when a training pauses, and how many steps may be queued until then.

    The first turn is not timed: it estimates the time of a step, by stretches of doubling length.

    Args:
        turns: the parent's messages; None trains to the end.
        origin: reading of the clock that start times count from.
        agree: returns the first rank's value in all ranks of a training, since each has separate
            turns and clocks.
        ends_at: reading of the clock at which a training to the end stops; None is no limit.

    Attributes:
        threads_to_try: numbers of CPU threads that this turn begins with.
    """

    def __init__(
        self,
        turns: Turns | None = None,
        send: Send = _send_nothing,
        origin: float = 0.0,
        agree: Callable[[Any], Any] = keep_own,
        ends_at: float | None = None,
    ) -> None:
        self._ends_at = ends_at
        self._now: float | None = None
        self._out_of_time = False
        self._turns = turns
        self._send = send
        self._origin = origin
        self._agree = agree
        self._over = turns is not None
        self._to_the_end = turns is None
        self._target = 0.0
        self._step_seconds: float | None = None
        self._tried = 0
        self._start = self._seconds = 0.0
        self._untimed_left = self._untimed_steps = self._timed_steps = self._examples = 0
        self.threads_to_try: tuple[int, ...] = ()
        self._pace: float | None = None
        self._ramped = self._part_seconds = 0.0
        self._part_steps = 0
        self._restarting = 0.0

    def wait_for_turn(self, loss: Callable[[], float | None] = _no_loss) -> bool:
        """Pause if a turn is over.

        Args:
            loss: returns the loss of the last step, for observers; called outside the timed part.

        Returns:
            Whether it paused.

        Raises:
            Enough: the parent needs no more slices.
            TrainingStarts: after these slices, the parent wants the training.
            OutOfTime: the time limit is reached.
        """
        if self._out_of_time:
            raise OutOfTime
        if not self._over or self._turns is None:
            return False
        self._send(Waiting(loss=loss()))
        turn = self._agree(self._turns.get())
        if turn["event"] == Stop.__name__:
            raise Enough
        if turn["event"] == StartTraining.__name__:
            raise TrainingStarts
        assert turn["event"] == TakeTurn.__name__, turn
        self.threads_to_try = tuple(turn["threads"])
        self._target = turn["seconds"] or 0.0
        self._to_the_end = turn["seconds"] is None
        self._pace = math.inf if turn["until_steady"] else None
        # The untimed part is divided into two, whose paces are compared.
        untimed = turn["untimed"] / 2 if turn["until_steady"] else turn["untimed"]
        self._untimed_left = (
            max(1, round(untimed / self._step_seconds)) if self._step_seconds else 0
        )
        self._over = False
        self._start = 0.0
        self._seconds = 0.0
        self._ramped = 0.0
        self._part_steps = 0
        self._part_seconds = 0.0
        self._untimed_steps = self._timed_steps = self._examples = 0
        self._restarting = 0.0
        return True

    def restarted(self, seconds: float) -> None:
        """Count the seconds it took to restart a training that ended within a turn.

        They are not timed.
        """
        self._restarting += self._agree(seconds)

    def most_steps(self) -> int | None:
        """Return the number of steps up to the next edge of the slice; None is no limit."""
        if self._to_the_end:
            return self._most_steps_in_time()
        if self._step_seconds is None:
            return max(1, self._tried)
        if self._untimed_left:
            return self._untimed_left
        left = math.ceil((self._target - self._seconds) / self._step_seconds)
        return max(left, FEWEST_STEPS - self._timed_steps, 1)

    def _most_steps_in_time(self) -> int | None:
        """Return the number of steps up to the next look at the time; None without a limit.

        It is half of what probably fits, so a training far from its limit is not interrupted.
        """
        if self._ends_at is None:
            return None
        if self._step_seconds is None or self._now is None:
            return max(1, self._tried)
        return max(1, int(_PART_OF_REST * (self._ends_at - self._now) / self._step_seconds))

    def _trained_to_the_end(self, steps: int, seconds: float, now: float) -> None:
        """Look at the time; a training without turns begins by estimating that of a step."""
        if self._ends_at is None:
            return
        self._now = self._agree(now)
        if self._step_seconds is None:
            self._tried += steps
            if seconds < ESTIMATE_SECONDS:
                return
        self._step_seconds = self._agree(seconds) / steps
        self._out_of_time = self._now >= self._ends_at

    def trained(self, steps: int, examples: int, seconds: float, now: float) -> None:
        """Count trained steps, up to the reading ``now`` of the clock; reports a complete slice."""
        if self._to_the_end:
            self._trained_to_the_end(steps, seconds, now)
            return
        seconds = self._agree(seconds)
        if self._step_seconds is None:
            self._tried += steps
            self._seconds += seconds
            if self._has_trained_enough and self._tried > FEWEST_STEPS:
                self._step_seconds = seconds / steps
                self._over = True
        elif self._untimed_left:  # an epoch may end meanwhile
            self._start = self._start or now - seconds - self._origin
            self._untimed_steps += steps
            self._untimed_left = max(self._untimed_left - steps, 0)
            self._part_steps = self._part_steps + steps
            self._part_seconds = self._part_seconds + seconds
            self._ramped += seconds
            is_ramp_over = self._ramped + self._restarting >= LONGEST_RAMP
            if not self._untimed_left and self._pace is not None and not is_ramp_over:
                before = self._pace
                self._pace = self._part_seconds / self._part_steps
                self._untimed_left = (
                    self._part_steps if abs(self._pace - before) > STEADY * self._pace else 0
                )
                self._part_steps = 0
                self._part_seconds = 0.0
            if not self._untimed_left:
                self._restarting = 0.0
        else:
            self._timed_steps += steps
            self._examples += examples
            self._seconds += seconds
            if self._has_trained_enough and self._timed_steps >= FEWEST_STEPS:
                self._end()

    @property
    def _has_trained_enough(self) -> bool:
        """Whether a turn has the seconds of training that the parent wants.

        It also counts if restarts take too long for that.
        """
        return self._seconds >= self._target or self._restarting >= MOST_RESTARTING * self._target

    def finish(self) -> None:
        """End the training, possibly within a slice."""
        if (
            not self._over
            and self._timed_steps >= FEWEST_STEPS
            and self._seconds >= self._target / 2
        ):
            self._end()

    def _end(self) -> None:
        steps = self._untimed_steps + self._timed_steps
        self._send(SliceTimed(self._start, steps, self._timed_steps, self._seconds, self._examples))
        self._step_seconds = self._seconds / self._timed_steps
        self._over = True
