"""Steps that do different work are compared by what they do, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.records import a_command
from trainmark.analysis.changes import speedup
from trainmark.analysis.comparison import compare
from trainmark.analysis.results import GroupResult
from trainmark.analysis.slices import compare_slices, steps_a_second
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Record, Slice
from trainmark.report.chart_data import chart_data
from trainmark.report.verdict import verdict

ROUNDS = 4


def sides(
    *,
    step_seconds: Sequence[float] = (0.01, 0.005),
    passes: Sequence[Sequence[int] | None] = ((1,), (1,)),
    amounts: Sequence[Sequence[float]] = ((), ()),
    examples: Sequence[float | None] = (None, None),
    steps: Sequence[Sequence[int]] = ((20,), (20,)),
    caveats: Sequence[Caveat] = (),
) -> list[Record]:
    """Return rounds of two sides; passes a step and steps a slice repeat from slice to slice."""
    records = []
    for side, name in enumerate(("a", "b")):
        for number in range(ROUNDS):
            slices = []
            for order in range(16):
                count = steps[side][order % len(steps[side])]
                of = passes[side]
                in_slice = None if of is None else count * of[(order + side) % len(of)]
                work = 1.0 if in_slice is None else in_slice / count
                seconds = count * work * step_seconds[side]
                slices.append(
                    Slice(
                        order // 2,
                        order,
                        0.0,
                        count,
                        count,
                        seconds,
                        count * (examples[side] or 1.0),
                        0.0,
                        0.0,
                        passes=in_slice,
                    )
                )
            times = tuple((float(at), 0.01, each) for at, each in enumerate(amounts[side]))
            seen = Observed(
                "torch", (), 400, 4.0, examples_per_step=examples[side], step_times=times
            )
            records.append(
                a_command(side=name, round=number, slices=slices, observed=seen, caveats=caveats)
            )
    return records


def compared(records: Sequence[Record]) -> GroupResult:
    return compare(records).groups[1]


def answer(records: Sequence[Record]) -> str:
    (work,) = chart_data(compare(records))
    return verdict(work).text


def test_equal_steps_are_compared_by_step() -> None:
    records = sides(amounts=((64.0, 64.0), (64.0, 65.0)))
    assert compared(records).speedup.ratio == pytest.approx(2.0)
    assert not {Caveat.PER_PASS, Caveat.UNEQUAL_WORK} & set(compared(records).caveats)


def test_episodes_are_compared_by_forward_pass() -> None:
    """The other side's episodes are as long on average, but never at the same time."""
    records = sides(passes=((1, 30), (1, 30)), step_seconds=(0.01, 0.01))
    result = compared(records)
    assert result.speedup.ratio == pytest.approx(1.0)
    assert Caveat.PER_PASS in result.caveats
    assert "per forward pass" in answer(records)


def test_longer_episodes_are_not_slower() -> None:
    records = sides(passes=((1, 2), (2, 4)), step_seconds=(0.01, 0.005))
    assert compared(records).speedup.ratio == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("passes", "amounts"),
    [
        (((1,), (5,)), ((), ())),
        (((1,), (1,)), ((64.0, 64.0), (128.0, 128.0))),
        ((None, None), ((64.0, 64.0), (128.0, 128.0))),
    ],
    ids=["passes", "input", "input, passes unknown"],
)
def test_steps_that_do_more_on_one_side_are_not_compared(
    passes: Sequence[Sequence[int] | None], amounts: Sequence[Sequence[float]]
) -> None:
    records = sides(passes=passes, amounts=amounts)
    result = compared(records)
    assert (result.speedup.ratio, result.speedup.verdict) == (None, "unclear")
    assert Caveat.UNEQUAL_WORK in result.caveats
    assert "a step does more on one side" in answer(records)
    assert speedup(records[:ROUNDS], records[ROUNDS:]) is None


def test_an_input_of_varying_size_says_nothing() -> None:
    records = sides(amounts=((10.0, 90.0), (80.0, 200.0)))
    assert compared(records).speedup.ratio == pytest.approx(2.0)


def test_known_examples_are_compared_by_example() -> None:
    records = sides(passes=((1,), (4,)), step_seconds=(0.01, 0.01), examples=(32.0, 128.0))
    assert compared(records).speedup.ratio == pytest.approx(1.0)
    assert Caveat.UNEQUAL_WORK not in compared(records).caveats


def test_where_steps_grow_only_equal_numbers_of_steps_count() -> None:
    growing = sides(steps=((20,), (40,)), caveats=[Caveat.GROWING])
    assert compare_slices(growing[:ROUNDS], growing[ROUNDS:]) is None
    steady = sides(steps=((20,), (40,)))
    assert compare_slices(steady[:ROUNDS], steady[ROUNDS:]) is not None
    equal = sides(steps=((20, 20, 20, 30), (20, 20, 20, 20)), caveats=[Caveat.GROWING])
    found = compare_slices(equal[:ROUNDS], equal[ROUNDS:])
    assert found is not None
    assert found.blocks == ROUNDS * 4


def test_a_second_stands_for_the_steps_of_a_mean_side() -> None:
    assert steps_a_second(sides()) is None
    assert steps_a_second(sides(caveats=[Caveat.GROWING])) == pytest.approx(399 / 4.0)
