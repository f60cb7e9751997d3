"""The gain of changes, which one is named first, and whether losses show that learning was
harmed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from msgspec import structs

from tests.records import a_record
from trainmark.analysis.changes import Finding, candidates, compare_losses, ranked, speedup
from trainmark.analysis.experiments import experiment, words
from trainmark.analysis.statistics import Estimate
from trainmark.record.record import Record, Slice


def found(change: str, ratio: float, learning: str = "same", low: float | None = None) -> Finding:
    about = experiment(change)
    interval = Estimate(ratio, low or ratio * 0.98, ratio * 1.02)
    return Finding(change, about.kind, about.part, interval, True, learning, "", None)  # type: ignore[arg-type]


def names(*findings: Finding) -> list[str]:
    return [each.change for each in ranked(findings)]


def test_the_largest_gain_comes_first() -> None:
    assert names(found("fused", 1.2), found("bf16", 1.5), found("threads=1", 0.9)) == [
        "bf16",
        "fused",
        "threads=1",
    ]


def test_a_change_comes_before_the_diagnosis_whose_gain_it_has() -> None:
    assert names(found("same-batch", 2.0), found("workers=2", 1.8), found("bf16", 1.9))[:2] == [
        "workers=2",
        "same-batch",
    ]
    assert names(found("same-batch", 2.0), found("workers=2", 1.1))[0] == "same-batch"


def test_a_larger_batch_is_not_first_if_others_explain_its_gain() -> None:
    assert names(found("batch=8", 4.0, "better"), found("same-batch", 2.5))[0] == "same-batch"
    assert names(found("batch=8", 4.0, "better"), found("threads=1", 1.85))[0] == "batch=8"


def test_a_larger_batch_is_first_only_if_it_learns_faster() -> None:
    for learning in ("same", "unclear"):
        assert names(found("batch=8", 9.0, learning), found("threads=1", 1.2))[0] == "threads=1"
    assert names(found("batch=8", 9.0, "worse"), found("bf16", 2.0, "worse"))[0] == "batch=8"


def test_another_precision_is_first_only_if_surely_faster() -> None:
    assert names(found("bf16", 1.66, low=1.48), found("threads=2", 1.57))[0] == "threads=2"
    assert names(found("bf16", 1.66, low=1.60), found("threads=2", 1.57))[0] == "bf16"


def test_a_larger_batch_is_no_loader() -> None:
    assert names(found("batch=8", 3.0), found("same-batch", 1.5), found("fused", 2.0)) == [
        "fused",
        "same-batch",
        "batch=8",
    ]


def test_what_harms_learning_is_not_named_first() -> None:
    assert names(found("bf16", 3.0, "worse"), found("fused", 1.1)) == ["fused", "bf16"]
    assert found("bf16", 3.0, "worse").harms
    assert not found("same-batch", 3.0, "worse").harms, "no training"


def test_what_is_not_certain_is_in_order_of_its_speed_up() -> None:
    assert names(found("bf16", 1.5, low=0.8), found("fused", 1.2, low=0.9)) == ["bf16", "fused"]


def test_what_is_not_certain_does_not_win() -> None:
    assert not found("fused", 1.1, low=0.99).wins
    assert not found("fused", 1.02, low=1.01).wins
    assert found("fused", 1.04, low=1.01).can_be_made


def test_an_unchanged_process_that_was_fast_hides_no_winner() -> None:
    every = [
        found("fused", 0.8),
        found("bf16", 0.82),
        found("foreach", 0.79),
        found("workers=2", 1.0),
    ]
    assert [each.change for each in candidates(every)] == ["workers=2"]


def sliced(pace: float, round_: int, disturbed: bool = False) -> Record:
    others = 0.5 if disturbed else 0.0
    slices = [
        Slice(order // 2, order, 0.0, 12, 10, 0.1 / pace, 100.0, others_share=others)
        for order in range(12)
    ]
    return a_record(round=round_, slices=slices)


def test_speed_is_compared_by_blocks_if_rounds_are_too_few() -> None:
    ratio = speedup([sliced(1, 0)], [sliced(1.5, 0)])
    assert ratio is not None
    assert ratio.value == pytest.approx(1.5)
    assert ratio.low == pytest.approx(1.5 * math.exp(-0.015)), "processes differ"
    ratio = speedup(
        [sliced(1, number) for number in range(6)], [sliced(1.5, number) for number in range(6)]
    )
    assert ratio is not None
    assert ratio.low == pytest.approx(1.5)


def test_a_step_counts_or_an_example_where_steps_differ_in_size() -> None:
    larger = structs.replace(
        sliced(1, 0), slices=[structs.replace(each, examples=200.0) for each in sliced(1, 0).slices]
    )
    for per_example, expected in ((False, 1.0), (True, 2.0)):
        ratio = speedup([sliced(1, 0)], [larger], per_example=per_example)
        assert ratio is not None
        assert ratio.value == pytest.approx(expected)


def test_blocks_count_if_all_are_disturbed() -> None:
    ratio = speedup([sliced(1, 0, True)], [sliced(1.5, 0, True)])
    assert ratio is not None
    assert ratio.low is not None


def losses(seed: int, steps: int = 200, end: float = 0.5, noise: float = 0.2) -> list[float]:
    draw = random.Random(seed)
    return [end + 2 * math.exp(-step / 40) + noise * draw.random() for step in range(steps)]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        (losses(1), "same"),
        ([loss + 1e-4 * step for step, loss in enumerate(losses(1))], "same"),
        (losses(2), "same"),
        (losses(1, end=0.9), "worse"),
        (losses(1, end=0.1), "better"),
        ([*losses(1)[:50], math.nan, *losses(1)[51:]], "worse"),
        (losses(1)[:5], "unclear"),
        ([], "unclear"),
    ],
)
def test_losses_are_compared(changed: Sequence[float], verdict: str) -> None:
    assert compare_losses([losses(1), losses(1)], [changed]) == verdict


def test_losses_that_vary_between_runs_need_a_larger_difference() -> None:
    unchanged = [losses(1, end=0.5), losses(2, end=0.9)]
    assert compare_losses(unchanged, [losses(3, end=0.95)]) == "same"
    assert compare_losses(unchanged, [losses(3, end=2.0)]) == "worse"


@pytest.mark.parametrize("steps", [150, 250])
def test_a_run_of_another_length_is_compared_to_the_usual_spread(
    steps: int,
) -> None:
    ends = {0.5: 200, 0.9: 190, 0.7: 140, 0.6: 195}
    unchanged = [
        losses(seed, steps=length, end=end) for seed, (end, length) in enumerate(ends.items())
    ]
    assert compare_losses(unchanged, [losses(5, steps=steps, end=0.9)]) == "same"
    assert compare_losses(unchanged, [losses(5, steps=steps, end=2.0)]) == "worse"


def test_a_larger_batch_is_compared_after_the_same_time() -> None:
    unchanged = [2.5 - 0.01 * step for step in range(200)]
    # what a step learns
    for larger, verdict in ((0.08, "better"), (0.025, "same"), (0.01, "worse")):
        assert (
            compare_losses([unchanged], [[2.5 - larger * step for step in range(25)]], steps=2.5)
            == verdict
        )


def test_steps_that_take_no_longer_are_compared_one_by_one() -> None:
    assert compare_losses([losses(1)], [losses(1)], steps=0.97) == "same"


def test_a_value_is_filled_into_the_advice() -> None:
    assert "num_workers=2" in words(experiment("workers=2").advice, "workers=2")
