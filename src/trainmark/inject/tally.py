"""Counts and seconds of what a training does in its steps and between them."""

from __future__ import annotations

from collections import Counter
from types import FrameType
from typing import Any

from .places import line_of, place_of

_SECONDS = (
    "loader_wait",
    "sync",
    "copy",
    "forward",
    "backward",
    "optimizer",
    "saving",
    "evaluation",
    "evaluation_in_steps",
    "no_grad",
)
_MOST_READS = 10
"""Most lines with reads in a report."""


class Tally:
    """Counts, and sums of seconds.

    Attributes:
        seconds: sums, of those that happened; ``seconds`` is that of all steps.
        counts: how often things happened.
        changed: experiments that took effect, with the evidence.
        failed: experiments that could not be applied, with the reason.
    """

    def __init__(self) -> None:
        self.seconds = {"seconds": 0.0}
        self._of_step: dict[str, float] = {}
        self.counts = {"evaluations": 0, "saves": 0, "skipped": 0, "no_grad_passes": 0}
        self.changed: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self._reads: Counter[tuple[tuple[str, int], str]] = Counter()

    def add(self, what: str, seconds: float) -> None:
        """Add seconds to a sum."""
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def add_to_step(self, what: str, seconds: float) -> None:
        """Add seconds of the step that goes on."""
        self._of_step[what] = self._of_step.get(what, 0.0) + seconds

    def stepped(self, *, counts: bool) -> None:
        """A step has ended; the first one does not count, whose duration is unknown."""
        if counts:
            for what, seconds in self._of_step.items():
                self.add(what, seconds)
        self._of_step.clear()

    def read(self, frame: FrameType, call: str, times: int) -> None:
        """Count reads of tensors by the code of a frame."""
        self._reads[(frame.f_code.co_filename, line_of(frame)), call] += times

    def figures(self) -> dict[str, Any]:
        """Return all of it, as it is reported; what happened in no timed step is None."""
        return {
            **{f"{name}_seconds": self.seconds.get(name) for name in _SECONDS},
            **self.counts,
            "syncs": {
                f"{place_of(*at)} {call}": times
                for (at, call), times in self._reads.most_common(_MOST_READS)
            },
            "changed": self.changed,
            "failed": self.failed,
        }
