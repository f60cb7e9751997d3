"""The opening of two rounds.

Both start together, and a few blocks of each reveal an obvious difference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from trainmark.analysis.obvious import BLOCKS
from trainmark.execute.parent.conversation import Conversation
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.turns import Round
from trainmark.measure.host import read_memory_available
from trainmark.record.record import Record

LIKELY_BYTES = 3 << 29
"""Assumed minimum memory of a process, in bytes (1.5 GiB): a framework on a GPU needs about this
much host memory."""


class OpeningListener(Protocol):
    """Decides what follows an opening."""

    def opened(self, records: Sequence[tuple[Task[Any], Record]]) -> Collection[str]:
        """Look at the slices of the opening, while no process computes.

        Args:
            records: each process's task, and the record of its slices.

        Returns:
            The ids of the records whose speed is decided.
        """

    def continues(self, *, is_first: bool) -> bool:
        """Return whether a round continues after the opening; called when its turn comes.

        Args:
            is_first: whether it is the first of the rounds.
        """

    def most_blocks(self, planned: int | None) -> int | None:
        """Return the number of blocks after which the processes of a round stop.

        The result is None to train to the end.

        Args:
            planned: the number in the plan.
        """


class OpeningUmpire:
    """Passes the decisions of a listener on to the turns.

    Args:
        conversations: those of both rounds.
        listener: decides.
    """

    blocks = BLOCKS
    """The number of blocks that :mod:`trainmark.analysis.obvious` looks at."""

    def __init__(self, conversations: Sequence[Conversation], listener: OpeningListener) -> None:
        self._conversations = conversations
        self._listener = listener
        self._is_first = True

    def decided(self) -> Collection[Conversation]:
        """Write the records of the slices, and return the conversations whose speed is decided."""
        written = [(each, each.keep_opening()) for each in self._conversations]
        kept = [(each, record) for each, record in written if record is not None]
        ids = self._listener.opened([(each.task, record) for each, record in kept])
        return [each for each, record in kept if record.id in ids]

    def continues(self, players: Sequence[Conversation]) -> bool:
        """Return whether the next round continues."""
        is_first = self._is_first
        self._is_first = False
        return bool(players) and self._listener.continues(is_first=is_first)

    def most_blocks(self, of: Round[Conversation]) -> int | None:
        """Return the number of blocks after which the processes of a round stop."""
        return self._listener.most_blocks(of.blocks)


def has_room(started: Sequence[Conversation], more: int) -> bool:
    """Return whether the memory of this machine probably suffices for ``more`` processes.

    The result is True if it can't be read.
    """
    available = read_memory_available()
    if available is None:
        return True
    largest = max((each.resident_bytes or 0 for each in started), default=0)
    return more * max(largest, LIKELY_BYTES) <= available
