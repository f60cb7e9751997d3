"""How long forward passes take, where that can be told."""

from __future__ import annotations

_NEARLY_ALL = 0.9
"""Share of the passes for which something must hold to be true of a training."""


class ForwardTime:
    """The time from a forward pass to the backward pass, in the steps that show it.

    An agent may choose many actions before it learns; what happens in between is no forward pass.
    So nothing is known if several forward passes usually come before a backward pass.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._seconds = 0.0
        self._of_whole_steps = 0.0
        self._of_step = 0.0
        self._passes = 0
        self._followed = 0

    def begins(self, now: float) -> None:
        """A forward pass with gradients begins."""
        self._passes += 1
        if self._began is None:
            self._began = now
        else:
            self._followed += 1

    def ends(self, now: float) -> None:
        """A backward pass is about to begin."""
        if self._began is not None:
            self._of_step += now - self._began
        self._began = None

    def stepped(self, seconds: float) -> None:
        """A step has ended that took this long; 0 for the first one, which is not timed."""
        if seconds and self._of_step:
            self._seconds += self._of_step
            self._of_whole_steps += seconds
        self._of_step = 0.0

    def seconds(self, of_all_steps: float) -> float | None:
        """Return the seconds in all steps, which took this long; None if they are unknown."""
        if not self._of_whole_steps or self._followed > (1 - _NEARLY_ALL) * self._passes:
            return None
        return of_all_steps * self._seconds / self._of_whole_steps
