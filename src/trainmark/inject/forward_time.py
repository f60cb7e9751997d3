"""How long forward passes take, where that can be known."""

from __future__ import annotations

_NEARLY_ALL = 0.9
"""Share of the forward passes that must be followed by their backward pass."""


class ForwardTime:
    """The time from a forward pass to its backward pass, in the steps that were seen.

    An agent may choose many actions before it learns, and what happens in between is no forward
    pass. So a step with a forward pass that no backward pass follows does not count, and nothing is
    known if there are many of them.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._passes = 0
        self._without_backward = 0
        self._backward_passes = 0
        self._without_forward = 0
        self._of_step = 0.0
        self._is_spoiled = False
        self._seconds = 0.0
        self._steps = 0

    def begins(self, now: float) -> None:
        """A forward pass with gradients begins."""
        self._passes += 1
        if self._began is not None:
            self._without_backward += 1
            self._is_spoiled = True
        self._began = now

    def interrupted(self) -> None:
        """Something else happens, such as an evaluation; then no backward pass follows."""
        if self._began is not None:
            self._without_backward += 1
            self._is_spoiled = True
        self._began = None

    def ends(self, now: float) -> None:
        """A backward pass is about to begin."""
        self._backward_passes += 1
        if self._began is None:
            self._without_forward += 1
        else:
            self._of_step += now - self._began
        self._began = None

    def stepped(self, seconds: float) -> None:
        """A step has ended that took this long; 0 for the first one, which is not timed."""
        if not self._is_spoiled and 0 < self._of_step <= seconds:
            self._seconds += self._of_step
            self._steps += 1
        self._of_step = 0.0
        self._is_spoiled = False

    def seconds(self, steps: int) -> float | None:
        """Return the seconds in a number of steps; None if they are unknown.

        Steps that were not seen count as the mean of the others.
        """
        if not self._steps or self._without_backward > (1 - _NEARLY_ALL) * self._passes:
            return None
        if self._without_forward > (1 - _NEARLY_ALL) * self._backward_passes:
            return None  # another network has computed
        return self._seconds * steps / self._steps
