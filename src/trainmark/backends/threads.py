"""Change the number of CPU threads of a running training.

Frameworks use as many threads as there are cores, which is not always the fastest number: a small
network spends more time on waking threads than on computing. Next to an accelerator, the CPU should
run with its best number of threads. Optional: without it, the CPU runs with the framework's choice,
and the record has the caveat ``default-threads``.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ThreadsSettable(Protocol):
    """A trainer whose number of CPU threads can change between two steps."""

    def threads(self) -> int:
        """Return the number of CPU threads in use."""

    def set_threads(self, number: int) -> None:
        """Use another number of CPU threads from the next step on.

        Args:
            number: from 1.
        """
