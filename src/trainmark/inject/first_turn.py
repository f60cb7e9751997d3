"""The first turn of a training, in which it finds its best number of CPU threads."""

from __future__ import annotations

from typing import Any

from . import best_threads


class FirstTurn:
    """Sets the best number of CPU threads in the first turn, or searches for it.

    It does nothing unless trainmark asks for this.

    Args:
        folder: where trainmark says which numbers to try.

    Attributes:
        steps: number of steps of the search so far; they are not timed.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._has_begun = False
        self._search: best_threads.Search | None = None
        self.steps = 0

    @property
    def searches(self) -> bool:
        """Whether the search goes on."""
        return self._search is not None

    def begin(self, settable: best_threads.Settable | None, device: object, last_step: int) -> None:
        """A turn begins; only the first one matters.

        Args:
            settable: the threads of the framework; None if their number can't be changed.
            device: where it trains.
            last_step: the step after which the training ends; 0 if it is not known.
        """
        if self._has_begun:
            return
        self._has_begun = True
        numbers = best_threads.wanted(self._folder)
        if settable is None or settable.fixed or not numbers:
            return
        if best_threads.is_fixed_by_variable() or not str(device).startswith("cpu"):
            return
        if len(numbers) == 1:
            settable.set(numbers[0])
            return
        most_steps = int(best_threads.MOST_SHARE * last_step) if last_step else None
        self._search = best_threads.Search(settable, numbers, most_steps)

    def stepped(self, seconds: float) -> dict[str, Any] | None:
        """A step of the search took this long; return what was found once the search has ended."""
        search = self._search
        if search is None:
            return None
        search.stepped(seconds)
        self.steps = search.steps
        if search.over:
            self._search = None
        return search.result if search.over else None
