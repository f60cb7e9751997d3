"""Whose turn it is."""

from __future__ import annotations

import pytest

from trainmark.execute.parent.turns import DOUBLES_AFTER, RAMP_SECONDS, SLICE_SECONDS, Turn, Turns
from trainmark.execute.protocol.requests import Stop, TakeTurn
from trainmark.record.record import Slice


def a_slice(block: int, others: float) -> Slice:
    return Slice(block, 0, 0.0, 11, 10, SLICE_SECONDS, 640, others, 0.0)


def played(turns: Turns[str], players: str, most: int = 100, *, ends: dict[str, int] | None = None) -> list[Turn[str]]:
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
        over = isinstance(turn.message, Stop) or turn.message.seconds is None or not left[turn.player]
        (turns.leaves if over else turns.waits)(turn.player)
    return taken


def blocks(turns: list[Turn[str]]) -> list[str]:
    numbers = sorted({turn.block for turn in turns if turn.block is not None})
    return ["".join(turn.player for turn in turns if turn.block == number) for number in numbers]


@pytest.mark.parametrize(
    ("players", "orders"),
    [("AB", ["ABBA", "BAAB", "ABBA"]), ("ABC", ["ABCCBA", "BCAACB", "CABBAC"])],
)
def test_every_block_is_counterbalanced_and_begins_with_another_side(players: str, orders: list[str]) -> None:
    assert blocks(played(Turns(players, blocks=3), players)) == orders


def test_each_side_begins_with_a_turn_that_is_not_timed_and_is_stopped_after_the_blocks() -> None:
    turns = played(Turns("AB", blocks=1), "AB")
    assert [turn.player for turn in turns] == list("ABABBAAB")
    assert [turn.order for turn in turns] == list(range(8))
    assert [turn.block for turn in turns] == [None, None, 0, 0, 0, 0, None, None]
    assert [type(turn.message) for turn in turns] == [TakeTurn] * 6 + [Stop] * 2


def test_nobody_has_a_turn_while_another_computes_or_is_not_ready() -> None:
    turns = Turns("AB")
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
    turns = played(Turns("AB"), "AB", ends={"B": 3})
    assert blocks(turns) == ["ABBA"], "B ended with its second slice"
    assert turns[-1].player == "A"
    assert turns[-1].message == TakeTurn(None)


def test_a_side_that_dies_at_its_start_keeps_nobody_waiting() -> None:
    turns = Turns("ABC")
    turns.leaves("C")
    assert blocks(played(turns, "AB", most=10))[0] == "ABBA"


def test_a_side_that_dies_while_it_computes_keeps_nobody_waiting() -> None:
    turns = Turns("AB")
    for player in "AB":
        turns.waits(player)
    turns.next()
    turns.leaves("A")
    after = turns.next()
    assert after is not None
    assert after.player == "B"


def test_when_all_have_left_there_is_no_turn() -> None:
    turns = Turns("AB")
    for player in "AB":
        turns.leaves(player)
    assert turns.next() is None


def test_a_disturbed_block_is_made_again() -> None:
    turns = Turns("AB", blocks=2)
    for player in "AB":
        turns.waits(player)
    taken = []
    while (turn := turns.next()) is not None and isinstance(turn.message, TakeTurn):
        taken.append(turn)
        if turn.block is not None:
            turns.timed(a_slice(turn.block, others=0.5 if turn.block == 1 else 0.0))
        turns.waits(turn.player)
    assert blocks(taken) == ["ABBA", "BAAB", "ABBA"]


def test_on_a_machine_that_never_rests_no_block_is_repeated_so_that_more_rounds_fit() -> None:
    turns = Turns("AB", blocks=2)
    for player in "AB":
        turns.waits(player)
    numbers = set()
    while (turn := turns.next()) is not None and isinstance(turn.message, TakeTurn):
        if turn.block is not None:
            numbers.add(turn.block)
            turns.timed(a_slice(turn.block, others=0.5))
        turns.waits(turn.player)
    assert numbers == {0, 1}


def test_who_has_trained_before_its_first_turn_need_not_settle() -> None:
    turns = Turns("AB", blocks=1)
    turns.waits("A", settled=True)
    turns.waits("B")
    first, second = turns.next(), None
    assert first is not None
    assert (first.player, first.block) == ("B", None)
    turns.waits("B")
    second = turns.next()
    assert second is not None
    assert (second.player, second.block) == ("A", 0)


def test_a_side_whose_others_are_elsewhere_has_blocks_by_itself() -> None:
    assert blocks(played(Turns("A", blocks=2, alone=True), "A")) == ["AA", "AA"]


def test_slices_of_a_long_training_become_longer() -> None:
    lengths = {
        turn.block: turn.message.seconds
        for turn in played(Turns("AB"), "AB", most=2 + 4 * 2 * DOUBLES_AFTER)
        if isinstance(turn.message, TakeTurn) and turn.block is not None
    }
    assert {lengths[block] for block in range(DOUBLES_AFTER)} == {SLICE_SECONDS}
    assert {lengths[block] for block in range(DOUBLES_AFTER, 2 * DOUBLES_AFTER)} == {2 * SLICE_SECONDS}


def test_the_first_slices_are_as_long_as_a_gpu_needs() -> None:
    turns = played(Turns("AB", blocks=1, slice_seconds=0.5, ramp="B"), "AB")
    assert [turn.message for turn in turns[2:4]] == [
        TakeTurn(0.5, 0.05),
        TakeTurn(0.5, RAMP_SECONDS, until_steady=True),
    ]
