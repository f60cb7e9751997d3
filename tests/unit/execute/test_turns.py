"""The order of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.execute.parent.turns import (
    DOUBLES_AFTER,
    SLICE_SECONDS,
    Round,
    Tempo,
    Turn,
    Turns,
    Umpire,
)
from trainmark.execute.protocol.worker_commands import StartTraining, Stop, TakeTurn
from trainmark.record.record import Slice


def turns_of(players: str, blocks: int | None = None, **options: Any) -> Turns[str]:
    """Return the turns of one round; each letter is a player."""
    return Turns([Round(tuple(players), blocks)], **options)


class Devices(Tempo[str]):
    """Lower-case letters compute on a GPU."""

    def device(self, player: str) -> str:
        return "cuda:0" if player.islower() else "cpu"

    def slice_seconds(self, player: str) -> float:
        return 0.5 if player.islower() else 0.1


def a_slice(block: int, others: float) -> Slice:
    return Slice(block, 0, 0.0, 11, 10, SLICE_SECONDS, 640, others, 0.0)


def played(
    turns: Turns[str], players: str, most: int = 100, *, ends: dict[str, int] | None = None
) -> list[Turn[str]]:
    """Turns that are taken at once, until all have left.

    Args:
        ends: after how many turns a player's training is over.
    """
    for player in players:
        turns.waits(player)
    taken: list[Turn[str]] = []
    left = dict(ends or {})
    while (turn := turns.next()) is not None and len(taken) < most:
        taken.append(turn)
        left[turn.player] = left.get(turn.player, most) - 1
        over = _is_last(turn) or not left[turn.player]
        (turns.leaves if over else turns.waits)(turn.player)
    return taken


def _is_last(turn: Turn[str]) -> bool:
    """Whether the player ends with this turn."""
    return isinstance(turn.message, Stop) or turn.message == TakeTurn(None)


def blocks(turns: list[Turn[str]]) -> list[str]:
    numbers = sorted({turn.block for turn in turns if turn.block is not None})
    return ["".join(turn.player for turn in turns if turn.block == number) for number in numbers]


@pytest.mark.parametrize(
    ("players", "orders"),
    [("AB", ["ABBA", "BAAB", "ABBA"]), ("ABC", ["ABCCBA", "BCAACB", "CABBAC"])],
)
def test_blocks_are_counterbalanced_and_start_with_another_side(
    players: str, orders: list[str]
) -> None:
    assert blocks(played(turns_of(players, blocks=3), players)) == orders


def test_sides_start_with_an_untimed_turn_and_stop_after_blocks() -> None:
    turns = played(turns_of("AB", blocks=1), "AB")
    assert [turn.player for turn in turns] == list("ABABBAAB")
    assert [turn.order for turn in turns] == list(range(8))
    assert [turn.block for turn in turns] == [None, None, 0, 0, 0, 0, None, None]
    assert [type(turn.message) for turn in turns] == [TakeTurn] * 6 + [Stop] * 2


def test_no_side_has_a_turn_while_another_computes_or_starts() -> None:
    turns = turns_of("AB")
    turns.waits("A")
    assert turns.next() is None, "B is starting"
    turns.waits("B")
    first = turns.next()
    assert first is not None
    assert turns.holder == first.player == "A"
    assert turns.next() is None, "A computes"
    turns.waits("A")
    assert turns.holder is None
    second = turns.next()
    assert second is not None
    assert second.player == "B"


def test_the_last_one_trains_to_the_end_without_slices() -> None:
    turns = played(turns_of("AB"), "AB", ends={"B": 3})
    assert blocks(turns) == ["ABBA"], "B ended with its second slice"
    assert turns[-1].player == "A"
    assert turns[-1].message == TakeTurn(None)


def test_a_side_that_dies_at_its_start_blocks_no_other() -> None:
    turns = turns_of("ABC")
    turns.leaves("C")
    assert blocks(played(turns, "AB", most=10))[0] == "ABBA"


def test_a_side_that_dies_while_computing_blocks_no_other() -> None:
    turns = turns_of("AB")
    for player in "AB":
        turns.waits(player)
    turns.next()
    turns.leaves("A")
    after = turns.next()
    assert after is not None
    assert after.player == "B"


def test_when_all_have_left_there_is_no_turn() -> None:
    turns = turns_of("AB")
    for player in "AB":
        turns.leaves(player)
    assert turns.next() is None


@pytest.mark.parametrize("most", [None, 12])
def test_no_block_begins_shortly_before_the_limit(most: int | None) -> None:
    seconds = iter(range(1000))
    limit = TimeLimit(100.0, clock=lambda: next(seconds) * 40.0)
    turns = played(turns_of("AB", most, limit=limit), "AB")
    assert blocks(turns) == ["ABBA", "BAAB", "ABBA"]
    assert all(map(_is_last, turns[-2:])), "both end"


def test_a_disturbed_block_is_made_again() -> None:
    turns = turns_of("AB", blocks=2)
    for player in "AB":
        turns.waits(player)
    taken = []
    while (turn := turns.next()) is not None and isinstance(turn.message, TakeTurn):
        taken.append(turn)
        if turn.block is not None:
            turns.timed(turn.player, a_slice(turn.block, others=0.5 if turn.block == 1 else 0.0))
        turns.waits(turn.player)
    assert blocks(taken) == ["ABBA", "BAAB", "ABBA"]


def test_no_block_is_repeated_if_all_of_them_are_disturbed() -> None:
    turns = turns_of("AB", blocks=2)
    for player in "AB":
        turns.waits(player)
    numbers = set()
    while (turn := turns.next()) is not None and isinstance(turn.message, TakeTurn):
        if turn.block is not None:
            numbers.add(turn.block)
            turns.timed(turn.player, a_slice(turn.block, others=0.5))
        turns.waits(turn.player)
    assert numbers == {0, 1}


def test_who_has_trained_before_its_first_turn_need_not_settle() -> None:
    turns = turns_of("AB", blocks=1)
    turns.waits("A", settled=True)
    turns.waits("B")
    first = turns.next()
    second = None
    assert first is not None
    assert (first.player, first.block) == ("B", None)
    turns.waits("B")
    second = turns.next()
    assert second is not None
    assert (second.player, second.block) == ("A", 0)


def test_a_side_whose_others_are_elsewhere_has_blocks_by_itself() -> None:
    assert blocks(played(turns_of("A", blocks=2, alone=True), "A")) == ["AA", "AA"]


def test_slices_of_a_long_training_become_longer() -> None:
    lengths = {
        turn.block: turn.message.seconds
        for turn in played(turns_of("AB"), "AB", most=2 + 4 * 2 * DOUBLES_AFTER)
        if isinstance(turn.message, TakeTurn) and turn.block is not None
    }
    assert {lengths[block] for block in range(DOUBLES_AFTER)} == {SLICE_SECONDS}
    assert {lengths[block] for block in range(DOUBLES_AFTER, 2 * DOUBLES_AFTER)} == {
        2 * SLICE_SECONDS
    }


def test_slices_of_a_gpu_are_longer() -> None:
    turns = played(turns_of("Ab", blocks=1, tempo=Devices()), "Ab")
    lengths = [turn.message.seconds for turn in turns[2:4] if isinstance(turn.message, TakeTurn)]
    assert lengths == [0.1, 0.5]


def test_turns_of_a_device_are_neighbours() -> None:
    found = blocks(played(turns_of("AaBb", blocks=4, tempo=Devices()), "AaBb"))
    assert found == ["ABabbaBA", "abABBAba", "BAbaabAB", "baBAABab"]


def test_a_turn_names_the_player_of_the_turn_before() -> None:
    turns = played(turns_of("Ab", blocks=1, tempo=Devices()), "Ab")
    assert [turn.follows for turn in turns] == [None, *(turn.player for turn in turns[:-1])]


class Decides(Umpire[str]):
    """Gives fixed answers, and remembers when it was asked."""

    blocks = 2

    def __init__(self, decided: str = "", *, goes_on: bool = True, most: int | None = None) -> None:
        self._decided = decided
        self._goes_on = goes_on
        self._most = most
        self.asked: list[str] = []

    def decided(self) -> str:
        self.asked.append("decided")
        return self._decided

    def continues(self, players: Sequence[str]) -> bool:
        self.asked.append("".join(players))
        return self._goes_on

    def most_blocks(self, of: Round[str]) -> int | None:
        return self._most


def opened(
    umpire: Decides, most: int | None = None, ends: dict[str, int] | None = None
) -> list[Turn[str]]:
    """The turns of two rounds of two sides that start together."""
    rounds = [Round(("A", "B"), most), Round(("C", "D"), most)]
    return played(Turns(rounds, umpire=umpire), "ABCD", ends=ends)


def messages(turns: list[Turn[str]], player: str) -> list[object]:
    return [turn.message for turn in turns if turn.player == player and turn.block is None]


def test_an_opening_has_blocks_of_each_round_and_then_a_decision() -> None:
    umpire = Decides()
    turns = opened(umpire, ends={"A": 9, "B": 9, "C": 9, "D": 9})
    assert "".join(turn.player for turn in turns[:20]) == "ABABBABAAB" + "CDCDDCDCCD"
    assert umpire.asked == ["decided", "AB", "CD"]


def test_after_an_opening_each_round_trains_in_further_blocks() -> None:
    turns = opened(Decides(), ends={"A": 9, "C": 9})
    of_first = [turn for turn in turns if turn.player in "AB"]
    assert [turn.block for turn in of_first if turn.block is not None] == [0] * 4 + [1] * 4 + [
        2
    ] * 4 + [3] * 3
    assert messages(turns, "A") == [TakeTurn(0.25), StartTraining()]
    assert messages(turns, "B") == [TakeTurn(0.25), StartTraining(), TakeTurn(None)]


def test_decided_sides_train_without_further_blocks() -> None:
    turns = opened(Decides("ABCD"))
    assert max(turn.block for turn in turns if turn.block is not None) == 1
    for player in "ABCD":
        assert messages(turns, player)[1:] == [StartTraining(), TakeTurn(None)]


def test_a_round_that_does_not_continue_stops() -> None:
    turns = opened(Decides(goes_on=False))
    for player in "ABCD":
        assert messages(turns, player)[1:] == [Stop()]


def test_rounds_of_slices_alone_continue_to_the_allowed_blocks() -> None:
    turns = opened(Decides(most=3), most=12)
    for player in "ABCD":
        assert [
            turn.block for turn in turns if turn.player == player and turn.block is not None
        ] == [0, 0, 1, 1, 2, 2]
        assert messages(turns, player)[1:] == [Stop()]


def test_a_disturbed_block_is_repeated_in_its_own_round_only() -> None:
    turns = Turns([Round(("A", "B")), Round(("C", "D"))], umpire=Decides("ABCD"))
    for player in "ABCD":
        turns.waits(player)
    taken = []
    while (turn := turns.next()) is not None and not _is_last(turn):
        taken.append(turn)
        if turn.block is not None:
            turns.timed(
                turn.player,
                a_slice(turn.block, others=0.5 if turn.player in "AB" and not turn.block else 0.0),
            )
        turns.waits(turn.player)
    assert {turn.block for turn in taken if turn.player == "A"} == {None, 0, 1, 2}
    assert {turn.block for turn in taken if turn.player == "C"} == {None, 0, 1}
