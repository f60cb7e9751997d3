"""Speed by slices: neighbours in time are compared, rounds give the interval, disturbed blocks are
left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from msgspec import structs

from tests.records import a_record
from trainmark.analysis.comparison import compare
from trainmark.analysis.obvious import THRESHOLD
from trainmark.analysis.results import GroupResult
from trainmark.analysis.slices import (
    FEWEST_BLOCKS,
    MOST_BLOCKS,
    Deviations,
    blocks_that_pay,
    compare_slices,
)
from trainmark.record.caveats import EXTERNAL_SHARE, Caveat
from trainmark.record.record import Record, Slice, are_disturbed

ABBA = ((0, 3), (1, 2))
BAAB = ((1, 2), (0, 3))


def slices(
    paces: Sequence[float], orders: Sequence[tuple[int, int]], others: Sequence[float | None] = ()
) -> list[Slice]:
    """Two of each block; ``paces`` are their seconds of an example, ``others`` the others' share in
    each block."""
    found = []
    for block, order in enumerate(orders):
        for position in range(2):
            share = others[block] if block < len(others) else 0.0
            pace = paces[2 * block + position]
            found.append(
                Slice(block, 4 * block + order[position], 0.0, 60, 50, 500 * pace, 500, share, 0.0)
            )
    return found


def a_round(
    number: int,
    slow: Sequence[float],
    fast: Sequence[float],
    others: Sequence[float | None] = (),
    **changes: object,
) -> list[Record]:
    blocks = len(slow) // 2
    orders = [(ABBA, BAAB)[block % 2] for block in range(blocks)]
    return [
        a_record(
            style=style,
            round=number,
            slices=slices(paces, [order[side] for order in orders], others),
            **changes,
        )  # type: ignore[arg-type]
        for side, (style, paces) in enumerate((("idiomatic", slow), ("fast", fast)))
    ]


def compared(records: Sequence[Record]) -> GroupResult:
    groups = compare(records, baseline=("style", "idiomatic"), margin=0.03).groups
    return next(group for group in groups if group.key.style == "fast")


def test_a_steady_drift_cancels_in_a_block() -> None:
    drifting = [math.exp(0.1 * order) for order in range(4)]
    slow = [2 * drifting[0], 2 * drifting[3]]
    fast = [drifting[1], drifting[2]]
    sliced = compare_slices(*([record] for record in a_round(0, slow, fast)))
    assert sliced is not None
    assert sliced.kept == pytest.approx((math.log(2),))


def test_the_speed_up_is_that_of_slices_and_not_of_epochs() -> None:
    rounds = [
        record
        for number in range(4)
        for record in a_round(number, [2.0] * 4, [1.0 + 0.01 * number] * 4)
    ]
    speedup = compared(rounds).speedup
    assert speedup.ratio == pytest.approx(2 / 1.015, rel=1e-3)
    assert speedup.verdict == "faster"
    assert speedup.low is not None
    assert speedup.high is not None
    assert speedup.low > 1.85
    assert speedup.high < 2.1


def test_one_or_two_rounds_give_an_estimate_and_no_verdict() -> None:
    rounds = [record for number in range(2) for record in a_round(number, [1.6] * 8, [1.0] * 8)]
    found = compared(rounds)
    assert found.speedup.ratio == pytest.approx(1.6)
    assert found.speedup.verdict == "unclear"
    assert found.speedup.at_least is None
    assert Caveat.FEW_ROUNDS in found.caveats


def test_two_rounds_decide_an_obvious_difference() -> None:
    found = compared(a_round(0, [3.0] * 4, [1.0] * 4) + a_round(1, [4.0] * 4, [1.0] * 4))
    assert found.speedup.verdict == "faster"
    assert found.speedup.ratio == pytest.approx(math.sqrt(3 * 4))
    assert found.speedup.at_least == pytest.approx(3 / THRESHOLD)
    assert found.speedup.high is None
    assert Caveat.FEW_ROUNDS not in found.caveats


def test_two_rounds_decide_what_is_obviously_slower() -> None:
    found = compared(a_round(0, [1.0] * 4, [3.0] * 4) + a_round(1, [1.0] * 4, [4.0] * 4))
    assert found.speedup.verdict == "slower"
    assert found.speedup.at_least == pytest.approx(3 / THRESHOLD)
    assert found.speedup.low is None


@pytest.mark.parametrize(("first", "second"), [(3.0, 1.6), (1.6, 3.0), (3.0, 1 / 3)])
def test_both_rounds_must_agree_to_be_obvious(first: float, second: float) -> None:
    found = compared(a_round(0, [first] * 4, [1.0] * 4) + a_round(1, [second] * 4, [1.0] * 4))
    assert found.speedup.verdict == "unclear"
    assert Caveat.FEW_ROUNDS in found.caveats


def test_later_rounds_are_no_further_chance_to_be_obvious() -> None:
    paces = [1.6, 3.0, 3.0]
    rounds = [
        record
        for number, pace in enumerate(paces)
        for record in a_round(number, [pace] * 4, [1.0] * 4)
    ]
    assert compared(rounds).speedup.at_least is None


def test_an_interval_that_decides_replaces_the_bound() -> None:
    paces = [3.0, 3.1, 3.2, 3.1]
    rounds = [
        record
        for number, pace in enumerate(paces)
        for record in a_round(number, [pace] * 4, [1.0] * 4)
    ]
    speedup = compared(rounds).speedup
    assert speedup.verdict == "faster"
    assert speedup.high is not None
    assert speedup.at_least is None


def test_an_interval_that_allows_both_leaves_the_bound() -> None:
    paces = [2.0, 9.0, 2.0]
    rounds = [
        record
        for number, pace in enumerate(paces)
        for record in a_round(number, [pace] * 4, [1.0] * 4)
    ]
    assert compared(rounds).speedup.at_least == pytest.approx(2 / THRESHOLD)


def test_disturbed_rounds_are_never_obvious() -> None:
    rounds = a_round(0, [3.0] * 4, [1.0] * 4, [0.5] * 2) + a_round(1, [4.0] * 4, [1.0] * 4)
    found = compared(rounds)
    assert found.speedup.verdict == "unclear"
    assert Caveat.TOO_DISTURBED in found.caveats


@pytest.mark.parametrize("disturbed", [0, 1])
def test_nothing_later_replaces_a_disturbed_opening(disturbed: int) -> None:
    """Otherwise the rule would be looked at again."""
    others = [[0.0] * 6, [0.0] * 6]
    others[disturbed][:2] = [0.5, 0.5]
    rounds = [
        each
        for number in range(2)
        for each in a_round(number, [3.0] * 12, [1.0] * 12, others[number])
    ]
    rounds += a_round(2, [2.0] * 12, [1.0] * 12)
    slow, fast = (
        tuple(each for each in rounds if each.backend.style == style)
        for style in ("idiomatic", "fast")
    )
    sliced = compare_slices(slow, fast)
    assert sliced is not None
    assert not sliced.is_obvious


def test_an_obvious_difference_needs_both_to_learn() -> None:
    stuck = [Caveat.NOT_LEARNING]
    rounds = [
        each for number in range(2) for each in a_round(number, [3.0] * 4, [1.0] * 4, caveats=stuck)
    ]
    speedup = compared(rounds).speedup
    assert speedup.verdict == "unclear"
    assert speedup.at_least is None


def test_the_outlier_of_a_round_is_trimmed() -> None:
    slow = [1.0] * 9 + [5.0] + [1.0] * 2
    sliced = compare_slices(*([record] for record in a_round(0, slow, [1.0] * 12)))
    assert sliced is not None
    assert sliced.kept == pytest.approx((0.0,))


def test_a_disturbed_block_is_left_out_and_reported() -> None:
    slow = [1.0, 1.0, 1.004, 1.004, 1.0, 1.0, 1.0, 1.0]
    others = [0.0, EXTERNAL_SHARE + 0.01, EXTERNAL_SHARE, None]
    rounds = [
        record
        for number in range(3)
        for record in a_round(number, slow, [1.0 + 0.001 * (number - 1)] * 8, others)
    ]
    found = compared(rounds)
    assert found.speedup.ratio == pytest.approx(1.0, abs=1e-5)
    assert found.speedup.verdict == "same"
    assert Caveat.DISTURBED in found.caveats


def test_time_that_the_host_stole_disturbs_too() -> None:
    slow, fast = a_round(0, [1.0] * 4, [1.0] * 4)
    stolen = [
        Slice(
            **{
                **{name: getattr(each, name) for name in each.__struct_fields__},
                "stolen_share": 0.2,
            }
        )
        for each in fast.slices
    ]
    sliced = compare_slices([slow], [a_record(style="fast", slices=stolen)])
    assert sliced is not None
    assert sliced.disturbed == sliced.blocks == 2


@pytest.mark.parametrize("others", [[0.5] * 4, [0.5, 0.5, 0.5, 0.0]])
def test_where_most_blocks_are_disturbed_there_is_no_verdict(others: list[float]) -> None:
    rounds = [
        record for number in range(4) for record in a_round(number, [2.0] * 8, [1.0] * 8, others)
    ]
    found = compared(rounds)
    assert found.speedup.ratio == pytest.approx(2.0)
    assert found.speedup.verdict == "unclear"
    assert Caveat.TOO_DISTURBED in found.caveats


@pytest.mark.parametrize(("others", "verdict"), [(0.5, "unclear"), (0.0, "faster")])
def test_epochs_have_no_verdict_if_the_slices_were_disturbed(others: float, verdict: str) -> None:
    rounds = []
    for number in range(4):
        slow, fast = a_round(number, [1.5] * 8, [1.0] * 8, [others] * 4)
        without = {} if number < 2 else {"slices": []}
        rounds += [structs.replace(slow, **without), structs.replace(_halved(fast), **without)]
    found = compared(rounds)
    assert found.speedup.of == "epoch"
    assert found.speedup.verdict == verdict
    assert (Caveat.TOO_DISTURBED in found.caveats) == (verdict == "unclear")


def _halved(record: Record) -> Record:
    """The record with epochs that took half as long."""
    epochs = [structs.replace(epoch, seconds=epoch.seconds / 2) for epoch in record.epochs]
    return structs.replace(record, epochs=epochs)


def test_no_verdict_is_given_if_disturbed_blocks_would_change_it() -> None:
    slow = [1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 1.0, 1.0]
    rounds = []
    for number in range(4):
        rounds += a_round(
            number, [pace * 1.5 for pace in slow[:4]] + [0.01] * 4, [1.0] * 8, [0.0, 0.0, 0.2, 0.2]
        )
    found = compared(rounds)
    assert found.speedup.verdict == "unclear"
    assert Caveat.TOO_DISTURBED in found.caveats


def test_a_block_that_a_side_did_not_finish_does_not_count() -> None:
    slow, fast = a_round(0, [1.0] * 4, [1.0] * 4)
    short = a_record(style="fast", slices=fast.slices[:3])
    sliced = compare_slices([slow], [short])
    assert sliced is not None
    assert sliced.blocks == 1


def test_slices_of_different_rounds_are_not_compared() -> None:
    (first, _) = a_round(0, [1.0] * 4, [1.0] * 4)
    (_, second) = a_round(1, [1.0] * 4, [1.0] * 4)
    assert compare_slices([first], [second]) is None


def test_rounds_of_slices_alone_judge_speed_but_not_learning() -> None:
    rounds = a_round(0, [2.0] * 8, [1.0] * 8)
    rounds += [
        record
        for number in (1, 2)
        for record in a_round(
            number,
            [2.0] * 8,
            [1.0] * 8,
            seconds=(),
            train_loss=None,
            train_accuracy=None,
            test_loss=None,
            test_accuracy=None,
        )
    ]
    found = compared(rounds)
    assert found.speedup.verdict == "faster"
    assert found.learning.low is None
    assert found.test_accuracy == 0.98


def test_the_number_of_blocks_gives_the_narrowest_interval() -> None:
    alike = Deviations(between=0.0, within=0.1)
    unlike = Deviations(between=0.1, within=0.1)
    assert blocks_that_pay(unlike, 3.0, 0.5, rounds=2, left=40.0) == FEWEST_BLOCKS
    assert blocks_that_pay(alike, 3.0, 0.5, rounds=20, left=400.0) == MOST_BLOCKS
    assert FEWEST_BLOCKS < blocks_that_pay(alike, 3.0, 0.5, rounds=2, left=40.0) < MOST_BLOCKS, (
        "Student's t counts"
    )
    assert blocks_that_pay(alike, 3.0, 0.5, rounds=20, left=8.0) == 10, "more would not fit"
    assert blocks_that_pay(alike, 3.0, 0.5, rounds=20, left=0.0) == FEWEST_BLOCKS


def test_a_block_is_judged_by_all_its_slices() -> None:
    def of(shares: Sequence[float | None]) -> list[Slice]:
        return [
            Slice(0, order, 0.0, 11, 10, 0.1, 640, share, None)
            for order, share in enumerate(shares)
        ]

    assert not are_disturbed(of([0.15, -0.05, 0.0, 0.05])), (
        "one tick too many here is one too few there"
    )
    assert are_disturbed(of([0.15, 0.05, 0.0, 0.05]))
    assert not are_disturbed(of([None] * 4))


def test_others_on_cores_that_no_side_uses_disturb_nothing() -> None:
    def a_slice(others: float, spare: float, stolen: float = 0.0) -> Slice:
        return Slice(0, 0, 0.0, 60, 50, 1.0, 500, others, stolen, spare)

    assert are_disturbed([a_slice(0.5, 0.0)])
    assert not are_disturbed([a_slice(0.5, 0.5)])
    assert are_disturbed([a_slice(0.6, 0.5)])
    assert are_disturbed([a_slice(0.1, 0.5, stolen=0.2)]), "the host takes what it likes"


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_disturbed_rounds_have_no_verdict(rounds: int) -> None:
    records = [
        each
        for number in range(rounds)
        for each in a_round(number, [2.0] * 4, [1.0] * 4, [0.5, 0.5])
    ]
    found = compared(records)
    assert found.speedup.verdict == "unclear"
    assert Caveat.TOO_DISTURBED in found.caveats
    assert Caveat.DISTURBED not in found.caveats, "it says that they are left out"
