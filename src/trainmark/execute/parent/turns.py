"""Interleaving: all sides of a round are started, and one of them computes at a time.

Each side starts with an untimed turn, to compile and to estimate the time of a step. Then come *blocks*: every side
runs a slice, then another one in reverse order (ABBA), so that a steady drift of the machine cancels out. The side that
goes first changes with each block. A block that other processes disturbed is repeated.

Slices are short, since the speed of a machine drifts over seconds: short blocks vary no more than long ones, and five
times as many fit into the same time. A GPU needs longer to reach its clock.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainmark.execute.protocol.requests import Stop, TakeTurn
from trainmark.record.record import Slice, are_disturbed

SETTLE_SECONDS = 0.25
SLICE_SECONDS, GPU_SLICE_SECONDS = 0.1, 0.5
UNTIMED_SHARE = 0.1
"""Untimed share of a slice, before it."""
RAMP_SECONDS = 0.25
"""Untimed seconds before a slice on a GPU whose clock dropped while the CPU computed."""
DOUBLES_AFTER = 50
"""Number of blocks after which slices become twice as long, so that a long training has a few hundred at most."""

Player = TypeVar("Player", bound=Hashable)


@dataclass(frozen=True)
class Turn(Generic[Player]):
    """One player's turn.

    Args:
        block: number of the block; None for a turn that is not timed.
        order: number of the turn in its round.
    """

    player: Player
    message: TakeTurn | Stop
    block: int | None
    order: int


class Turns(Generic[Player]):
    """The turns of one round.

    Args:
        players: in the order of the plan.
        blocks: number of undisturbed blocks after which all stop; None lets them train to the end, in blocks as long
            as there are several players.
        alone: use blocks even with one player.
        slice_seconds: length of a slice in the first blocks.
        ramp: players that need a warm-up before each slice.

    Attributes:
        holder: the player whose turn it is; None between turns.
    """

    def __init__(
        self,
        players: Iterable[Player],
        blocks: int | None = None,
        *,
        alone: bool = False,
        slice_seconds: float = SLICE_SECONDS,
        ramp: Collection[Player] = (),
    ) -> None:
        self._active = list(players)
        self._waiting: set[Player] = set()
        self._settled: set[Player] = set()
        self._slices: dict[int, list[Slice]] = {}
        self.holder: Player | None = None
        self._blocks, self._fewest = blocks, 1 if alone else 2
        self._slice_seconds, self._ramp = slice_seconds, ramp
        self._turns = enumerate(self._messages())

    def waits(self, player: Player, *, settled: bool = False) -> None:
        """End a player's turn: it is ready for the next one. A player that is ``settled`` needs no untimed turn."""
        self._waiting.add(player)
        self.holder = None
        if settled:
            self._settled.add(player)

    def timed(self, found: Slice) -> None:
        """Keep a finished slice; a block that other processes disturbed is repeated."""
        self._slices.setdefault(found.block, []).append(found)

    def leaves(self, player: Player) -> None:
        """Remove a player whose process has ended."""
        self._active.remove(player)
        self.holder = None if self.holder == player else self.holder
        self._waiting.discard(player)

    def has_company(self, player: Player, *, begun: bool) -> bool:
        """Whether there is another player: a waiting one or, if all have ``begun`` at the same time, any."""
        return any(other != player for other in (self._active if begun else self._waiting))

    def pauses(self, player: Player) -> bool:
        """Whether it waits for a turn."""
        return player in self._waiting

    def next(self) -> Turn[Player] | None:
        """Return the next turn; None while a player computes, or is not ready yet."""
        if not self._active or not self._waiting.issuperset(self._active):
            return None
        order, (player, message, block) = next(self._turns)
        self._waiting.remove(player)
        self.holder = player
        return Turn(player, message, block, order)

    def _messages(self) -> Iterator[tuple[Player, TakeTurn | Stop, int | None]]:
        for player in self._rotated(0):
            if player in self._active and player not in self._settled:
                yield player, TakeTurn(SETTLE_SECONDS), None
        block = 0
        while len(self._active) >= self._fewest and not self._has_enough(block):
            order, seconds = self._rotated(block), self._slice_seconds * 2 ** (block // DOUBLES_AFTER)
            for player in (*order, *reversed(order)):
                if player in self._active:
                    untimed = RAMP_SECONDS if player in self._ramp else UNTIMED_SHARE * seconds
                    yield player, TakeTurn(seconds, untimed, player in self._ramp), block
            block += 1
        while True:
            yield self._active[0], TakeTurn(None) if self._blocks is None else Stop(), None

    def _has_enough(self, block: int) -> bool:
        """Whether there are enough undisturbed blocks, or most blocks are disturbed."""
        if self._blocks is None or block < self._blocks:
            return False
        disturbed = sum(map(are_disturbed, self._slices.values()))
        return block - disturbed >= self._blocks or disturbed > block / 2

    def _rotated(self, by: int) -> tuple[Player, ...]:
        by %= len(self._active)
        return (*self._active[by:], *self._active[:by])
