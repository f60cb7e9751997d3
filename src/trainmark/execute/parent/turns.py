"""Interleaving: all sides of a round are started, and one of them computes at a time.

Each side starts with an untimed turn, to compile and to estimate the time of a step. Then come
*blocks*: every side runs a slice, then another one in reverse order (ABBA), so that a steady drift
of the machine cancels out. The device that goes first changes with each block. Within a device, the
side that goes first changes each time that every device has gone first once. The turns of a GPU are
neighbours, so its clock drops less often. A block that other processes disturbed is repeated.

Slices are short, since the speed of a machine drifts over seconds: short blocks vary no more than
long ones, and five times as many fit into the same time. A GPU needs longer to reach its clock.

With an *opening*, the processes of several rounds are alive at the same time. Each round runs a few
blocks, then an :class:`Umpire` says which sides are decided; then the rounds continue, one after
the other. Decided sides take part in no more blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from trainmark.analysis.grouping import grouped
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.execute.protocol.worker_commands import StartTraining, Stop, TakeTurn
from trainmark.record.record import Slice, are_disturbed

SETTLE_SECONDS = 0.25
"""Seconds of the untimed turn that each side starts with, to compile and to time a step."""
SLICE_SECONDS = 0.1
"""Seconds of a slice on a CPU. It is short because the machine's speed drifts over seconds."""
GPU_SLICE_SECONDS = 0.5
"""Seconds of a slice on a GPU, which needs longer to reach its clock."""
UNTIMED_SHARE = 0.1
"""Time that a side trains untimed before each slice, as a share of the slice."""
DOUBLES_AFTER = 50
"""Number of blocks after which slices become twice as long, so that a long training has a few
hundred at most."""

Player = TypeVar("Player", bound=Hashable)
AnyPlayer = TypeVar("AnyPlayer", bound=Hashable, contravariant=True)
Value = TypeVar("Value")
Message: TypeAlias = TakeTurn | StartTraining | Stop


@dataclass(frozen=True)
class Turn(Generic[Player]):
    """One player's turn.

    Args:
        block: number of the block in the player's round; None for a turn that is not timed.
        order: number of the turn.
        follows: the player that had the turn before; None for the first turn.
    """

    player: Player
    message: Message
    block: int | None
    order: int
    follows: Player | None = None


@dataclass(frozen=True)
class Round(Generic[Player]):
    """The players of one round.

    Args:
        players: in the order of the plan.
        blocks: number of undisturbed blocks after which all stop; None lets them train to the end,
            in blocks as long as there are several players.
        decided: players that take part in no blocks.
    """

    players: tuple[Player, ...]
    blocks: int | None = None
    decided: frozenset[Player] = frozenset()


class Tempo(Generic[AnyPlayer]):
    """Where players compute, and how long their slices are. By default, all compute on the CPU."""

    def device(self, player: AnyPlayer) -> str:
        """Return the device of a player."""
        del player
        return "cpu"

    def slice_seconds(self, player: AnyPlayer) -> float:
        """Return the length of a player's slices in the first blocks."""
        del player
        return SLICE_SECONDS


class Umpire(Protocol[Player]):
    """Decides what happens after the blocks of an opening."""

    blocks: int
    """Number of undisturbed blocks of each round before the decision."""

    def decided(self) -> Collection[Player]:
        """Return the players that need no further blocks; called once, while no player computes."""

    def continues(self, players: Sequence[Player]) -> bool:
        """Return whether the players of a round continue.

        Called before they do, while no player computes.
        """

    def most_blocks(self, of: Round[Player]) -> int | None:
        """Return the number of blocks after which the players of a round stop.

        The result is None to train to the end.
        """


class Turns(Generic[Player]):
    """The turns of one round, or of several with an opening.

    Args:
        rounds: the rounds.
        alone: use blocks even with one player.
        tempo: where players compute, and how long their slices are.
        umpire: decides what follows the blocks of the opening; None without an opening.
        limit: when everything has to end; no block begins shortly before.

    Attributes:
        holder: the player whose turn it is; None between turns.
    """

    def __init__(
        self,
        rounds: Sequence[Round[Player]],
        *,
        alone: bool = False,
        tempo: Tempo[Player] | None = None,
        umpire: Umpire[Player] | None = None,
        limit: TimeLimit = NO_LIMIT,
    ) -> None:
        self._limit = limit
        self._rounds = list(rounds)
        self._tempo: Tempo[Player] = tempo or Tempo()
        self._umpire = umpire
        self._fewest = 1 if alone else 2
        self._active: list[Player] = []
        self._waiting: set[Player] = set()
        self._settled: set[Player] = set()
        self._number: dict[Player, int] = {}
        for number, each in enumerate(rounds):
            self._active += each.players
            self._number.update(dict.fromkeys(each.players, number))
        self._slices: list[dict[int, list[Slice]]] = [{} for _ in rounds]
        self._blocks = [0 for _ in rounds]
        self.holder: Player | None = None
        self._latest: Player | None = None
        self._turns = enumerate(self._opened() if umpire else self._of_round(0))

    def waits(self, player: Player, *, settled: bool = False) -> None:
        """End a player's turn: it is ready for the next one.

        A player that is ``settled`` needs no untimed turn.
        """
        self._waiting.add(player)
        self.holder = None
        if settled:
            self._settled.add(player)

    def timed(self, player: Player, found: Slice) -> None:
        """Keep a player's finished slice; a block that other processes disturbed is repeated."""
        self._slices[self._number[player]].setdefault(found.block, []).append(found)

    def leaves(self, player: Player) -> None:
        """Remove a player whose process has ended, or never starts."""
        self._active.remove(player)
        self.holder = None if self.holder == player else self.holder
        self._waiting.discard(player)

    def has_company(self, player: Player, *, begun: bool) -> bool:
        """Whether there is another player.

        It is a waiting one or, if all have ``begun`` at the same time, any.
        """
        return any(other != player for other in (self._active if begun else self._waiting))

    @property
    def has_opening(self) -> bool:
        """Whether the players of several rounds are alive at the same time."""
        return self._umpire is not None

    def has_other_round(self, player: Player) -> bool:
        """Whether players of another round are alive, too."""
        return any(self._number[other] != self._number[player] for other in self._active)

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
        follows = self._latest
        self._latest = player
        return Turn(player, message, block, order, follows)

    def _opened(self) -> Iterator[tuple[Player, Message, int | None]]:
        """Yield the turns of all rounds, with an opening."""
        umpire = self._umpire
        assert umpire is not None
        for number, each in enumerate(self._rounds):
            yield from self._settles(each.players)
            yield from self._in_blocks(number, each.players, umpire.blocks)
        decided = frozenset(umpire.decided())
        for number, each in enumerate(self._rounds):
            self._rounds[number] = Round(each.players, umpire.most_blocks(each), decided)
            if umpire.continues(self._present(each.players)):
                if self._rounds[number].blocks is None:
                    for player in each.players:
                        if player in self._active:  # a player may have ended meanwhile
                            yield player, StartTraining(), None
                yield from self._of_round(number)
            else:
                yield from self._until_gone(each.players, Stop())

    def _of_round(self, number: int) -> Iterator[tuple[Player, Message, int | None]]:
        """Yield the turns of one round until its players are gone."""
        each = self._rounds[number]
        undecided = [player for player in each.players if player not in each.decided]
        yield from self._settles(undecided)
        yield from self._in_blocks(number, undecided, each.blocks)
        yield from self._until_gone(each.players, TakeTurn(None) if each.blocks is None else Stop())

    def _settles(self, players: Iterable[Player]) -> Iterator[tuple[Player, Message, int | None]]:
        """Yield an untimed turn for each player that has not had one."""
        for player in players:
            if player in self._active and player not in self._settled:
                self._settled.add(player)
                yield player, TakeTurn(SETTLE_SECONDS), None

    def _in_blocks(
        self, number: int, players: Sequence[Player], most: int | None
    ) -> Iterator[tuple[Player, Message, int | None]]:
        """Yield the blocks of a round, until ``most`` are undisturbed.

        It ends earlier if there are too few players.
        """
        while True:
            present = self._present(players)
            is_alone = len(present) < self._fewest
            if is_alone or self._limit.is_near or self._has_enough(number, most):
                return
            block = self._blocks[number]
            self._blocks[number] += 1
            order = self._order(present, block)
            for player in (*order, *reversed(order)):
                if player in self._active:
                    seconds = self._tempo.slice_seconds(player) * 2 ** (block // DOUBLES_AFTER)
                    yield player, TakeTurn(seconds, UNTIMED_SHARE * seconds), block

    def _until_gone(
        self, players: Sequence[Player], message: Message
    ) -> Iterator[tuple[Player, Message, int | None]]:
        """Yield a last turn for each player, one after the other."""
        while present := self._present(players):
            yield present[0], message, None

    def _has_enough(self, number: int, most: int | None) -> bool:
        """Whether a round has enough undisturbed blocks, or most of its blocks are disturbed."""
        done = self._blocks[number]
        if most is None or done < most:
            return False
        disturbed = sum(map(are_disturbed, self._slices[number].values()))
        return done - disturbed >= most or disturbed > done / 2

    def _present(self, players: Iterable[Player]) -> list[Player]:
        return [player for player in players if player in self._active]

    def _order(self, players: Sequence[Player], block: int) -> list[Player]:
        """Return the players, device by device, in the order of a block.

        See the module's docstring.
        """
        by_device = list(grouped(players, self._tempo.device).values())
        sides_turned = block // len(by_device)
        order: list[Player] = []
        for of_device in _rotated(by_device, block):
            order += _rotated(of_device, sides_turned)
        return order


def _rotated(values: Sequence[Value], by: int) -> list[Value]:
    """Return the values, rotated to the left by ``by`` places."""
    by %= len(values)
    return [*values[by:], *values[:by]]
