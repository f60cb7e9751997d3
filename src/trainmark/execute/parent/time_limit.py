"""The time limit of a command, known to everything that starts a process or waits for one.

Three things keep it. Plans leave out what would probably take longer. Shortly before the limit, no
block of slices begins any more, and trainings end themselves at a step. At the limit, the scheduler
ends every process that still runs, and keeps what it has reported as the record of a shortened run.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

_TRAINING_SHARE = 0.95
"""Share of the time after which trainings and rounds end themselves; the rest is for their last
reports."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a command may take.

    Args:
        seconds: from its beginning; infinite without a limit.
        began: reading of the clock at its beginning.
        name: what the user calls it, such as "the budget of 90 s".
        patience: seconds that the other sides of a round wait for one that starts or computes. It
            is then ended as at the limit.
        clock: returns the time in seconds.
    """

    seconds: float = math.inf
    began: float = 0.0
    name: str = "the time limit"
    patience: float = math.inf
    clock: Callable[[], float] = time.perf_counter

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.began

    @property
    def left(self) -> float:
        """Seconds until the limit; 0 once it is reached."""
        return max(self.seconds - self.passed, 0.0)

    @property
    def is_reached(self) -> bool:
        """Whether everything has to end now."""
        return self.passed >= self.seconds

    @property
    def is_near(self) -> bool:
        """Whether no further block begins, so that the processes can end by themselves."""
        return self.passed >= _TRAINING_SHARE * self.seconds

    @property
    def reason(self) -> str:
        """Why a run was shortened."""
        return f"{self.name} ended it"

    @property
    def training_ends_at(self) -> float | None:
        """Reading of the clock at which trainings end themselves; None without a limit."""
        return None if math.isinf(self.seconds) else self.began + _TRAINING_SHARE * self.seconds

    def at_most(self, seconds: float) -> float:
        """Return ``seconds``, or those that are left if they are fewer."""
        return min(seconds, self.left)

    def at(self, seconds: float, patience: float = math.inf) -> TimeLimit:
        """Return the limit of a part that ends ``seconds`` after the beginning, or earlier."""
        return dataclasses.replace(
            self, seconds=min(seconds, self.seconds), patience=min(patience, self.patience)
        )


NO_LIMIT = TimeLimit()
