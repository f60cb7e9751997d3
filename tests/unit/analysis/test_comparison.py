"""Ratios, verdicts, pairing, references and caveats of whole comparisons."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import structs

from tests.records import a_record, rounds
from trainmark.analysis.comparison import compare
from trainmark.analysis.results import Comparison, GroupResult
from trainmark.errors import UnknownName, UsageError
from trainmark.record.caveats import Caveat
from trainmark.record.codec import to_plain
from trainmark.record.record import Final, Record, Slice
from trainmark.workload import catalog
from trainmark.workload.schedule import Target


def fast(times: list[float], **arguments: Any) -> list[Record]:
    """Rounds of a second backend."""
    return rounds(times, **{"backend": "torch", "version": "2.8.0", **arguments})


def other(comparison: Comparison) -> GroupResult:
    """The one group that is not a reference."""
    (found,) = (g for n, g in enumerate(comparison.groups) if not comparison.is_reference(n))
    return found


def test_the_paired_example_by_hand() -> None:
    # Ratios 2, 4, 1: see test_statistics.test_paired_log_ratios_by_hand.
    group = other(compare(rounds([4.0, 4.0, 4.0]) + fast([2.0, 1.0, 4.0])))
    assert group.speedup.ratio == pytest.approx(2)
    assert group.speedup.low == pytest.approx(0.357461, rel=1e-5)
    assert group.speedup.high == pytest.approx(11.190004, rel=1e-5)
    assert group.speedup.verdict == "unclear"
    assert Caveat.UNPAIRED not in group.caveats


def test_pairing_cancels_a_drift_that_both_share() -> None:
    drift = [1.0, 2.0, 3.0, 4.0, 5.0]
    paired = other(compare(rounds([2 * d for d in drift]) + fast([1.9 * d for d in drift])))
    assert paired.speedup.verdict == "faster"
    apart = other(
        compare(rounds([2 * d for d in drift]) + fast([1.9 * d for d in drift], group="plan-2"))
    )
    assert apart.speedup.ratio == pytest.approx(paired.speedup.ratio)
    assert apart.speedup.verdict == "unclear"
    assert Caveat.UNPAIRED in apart.caveats


def test_a_failed_round_is_left_out_of_the_pairs_on_both_sides() -> None:
    failed = fast([9.0], status="failed")
    measured = [record for record in fast([99.0, 1.0, 1.0, 1.0]) if record.round > 0]
    group = other(compare(rounds([50.0, 2.0, 2.0, 2.0]) + failed + measured))
    assert group.speedup.ratio == pytest.approx(2)
    assert (group.runs, group.failed) == (3, 1)
    assert Caveat.FAILED_RUNS in group.caveats


def test_continued_repeats_are_never_paired() -> None:
    workload = catalog.find("mnist-mlp32").with_schedule(protocol="continued")
    group = other(
        compare(rounds([2.0] * 4, workload=workload) + fast([1.0] * 4, workload=workload))
    )
    assert group.speedup.verdict == "faster"
    assert Caveat.UNPAIRED in group.caveats


def test_two_rounds_give_a_ratio_and_no_interval() -> None:
    group = other(compare(rounds([2.0, 2.0]) + fast([1.0, 1.0])))
    assert group.speedup.ratio == pytest.approx(2)
    assert (group.speedup.low, group.speedup.high, group.speedup.verdict) == (None, None, "unclear")
    assert (group.epoch_seconds.median, group.epoch_seconds.low) == (1.0, None)
    assert Caveat.FEW_ROUNDS in group.caveats


@pytest.mark.parametrize(
    ("times", "verdict"),
    [([1.0, 1.01, 0.99], "faster"), ([4.0, 4.04, 3.96], "slower"), ([2.0, 2.001, 1.999], "same")],
)
def test_verdicts(times: list[float], verdict: str) -> None:
    assert other(compare(rounds([2.0, 2.0, 2.0]) + fast(times))).speedup.verdict == verdict


def test_the_margin_is_a_fraction() -> None:
    records = rounds([2.0, 2.0, 2.0]) + fast([2.0, 2.06, 1.94])
    assert other(compare(records, margin=0.03)).speedup.verdict == "unclear"
    assert other(compare(records, margin=0.1)).speedup.verdict == "same"


@pytest.mark.parametrize(
    "not_learning", [{"caveats": [Caveat.NOT_LEARNING]}, {"train_loss": math.nan}]
)
def test_a_run_that_does_not_learn_is_never_called_faster(not_learning: dict[str, Any]) -> None:
    group = other(
        compare(rounds([2.0] * 3) + fast([1.0] * 2) + fast([1.0] * 3, **not_learning)[2:])
    )
    assert group.speedup.ratio == pytest.approx(2)
    assert group.speedup.low is not None
    assert group.speedup.low > 1
    assert group.speedup.verdict == "unclear"
    assert Caveat.NOT_LEARNING in group.caveats


def test_no_side_is_faster_than_a_reference_that_does_not_learn() -> None:
    group = other(compare(rounds([1.0] * 3, caveats=[Caveat.NOT_LEARNING]) + fast([2.0] * 3)))
    assert group.speedup.verdict == "unclear"
    assert Caveat.NOT_LEARNING not in group.caveats


def test_a_diverged_run_is_shown_and_its_nan_survives_to_json() -> None:
    comparison = compare(
        fast(
            [1.0] * 3,
            status="diverged",
            train_loss=math.nan,
            test_accuracy=None,
            train_accuracy=None,
        )
    )
    plain = to_plain(comparison.data)
    (group,) = plain["groups"]
    assert group["train_loss"] == "nan"
    assert group["training_seconds"] is None
    assert group["caveats"] == ["not-learning"]
    assert plain["published"] == []


def test_failed_groups_are_never_the_reference() -> None:
    comparison = compare(
        fast([1.0], status="failed", created="2026-11-20T00:00:00Z") + rounds([2.0] * 3)
    )
    failed, measured = comparison.groups
    assert (failed.runs, failed.failed, failed.reference) == (0, 1, 1)
    assert failed.speedup.ratio is None
    assert failed.epoch_seconds.median is None
    assert comparison.is_reference(1)
    assert measured.speedup.verdict == "same"


def test_workloads_and_schedules_are_never_mixed_in_one_ratio() -> None:
    longer = catalog.find("mnist-mlp512").with_schedule(epochs=20)
    comparison = compare(
        rounds([2.0] * 3)
        + rounds([1.0] * 3, workload="mnist-cnn")
        + rounds([1.0] * 3, workload=longer)
    )
    assert [comparison.is_reference(position) for position in range(3)] == [True, True, True]


def test_groups_keep_the_order_they_were_measured_in() -> None:
    comparison = compare(
        fast([1.0], created="2026-11-21T10:00:02Z") + rounds([2.0], created="2026-11-21T10:00:01Z")
    )
    assert [group.key.backend for group in comparison.groups] == ["numpy", "torch"]


def four_corners() -> list[Record]:
    """Two backends on two devices, in rounds of one plan: 8, 4, 6 and 1 seconds an epoch."""
    corners = [
        ("numpy", "cpu", 8.0),
        ("numpy", "cuda:0", 4.0),
        ("torch", "cpu", 6.0),
        ("torch", "cuda:0", 1.0),
    ]
    return [
        a_record(
            backend=backend,
            device=device,
            round=number,
            seconds=(9.0, time),
            created=f"2026-11-21T10:{number}{place}",
        )
        for number in range(3)
        for place, (backend, device, time) in enumerate(corners)
    ]


def ratios(comparison: Comparison) -> list[float | None]:
    return [group.speedup.ratio and round(group.speedup.ratio, 6) for group in comparison.groups]


def test_without_by_the_first_measured_side_is_the_reference() -> None:
    assert ratios(compare(four_corners())) == [1, 2, pytest.approx(8 / 6, abs=1e-6), 8]


def test_by_compares_along_one_dimension_alone() -> None:
    assert ratios(compare(four_corners(), by="device")) == [1, 2, 1, 6]
    assert ratios(compare(four_corners(), by="backend")) == [
        1,
        1,
        pytest.approx(8 / 6, abs=1e-6),
        4,
    ]
    assert ratios(compare(four_corners(), by="style")) == [1, 1, 1, 1]


def test_by_backend_ignores_the_version_that_comes_with_it() -> None:
    comparison = compare(rounds([2.0] * 3) + fast([1.0] * 3), by="backend")
    assert ratios(comparison) == [1, 2]


def test_the_baseline_chooses_the_reference() -> None:
    assert ratios(compare(four_corners(), baseline=("device", "cuda:0"))) == [
        0.5,
        1,
        pytest.approx(4 / 6, abs=1e-6),
        4,
    ]
    by_device = compare(four_corners(), by="device", baseline=("device", "cuda:0"))
    assert ratios(by_device) == [0.5, 1, pytest.approx(1 / 6, abs=1e-6), 1]


def test_a_family_without_the_baseline_is_not_compared() -> None:
    comparison = compare(
        [*four_corners(), a_record(workload="mnist-cnn")], baseline=("device", "cuda:0")
    )
    alone = next(group for group in comparison.groups if group.key.workload == "mnist-cnn")
    assert (alone.reference, alone.speedup.ratio) == (None, None)


def test_an_unknown_baseline_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="one of cpu, cuda:0"):
        compare(four_corners(), baseline=("device", "cuda:7"))
    with pytest.raises(UnknownName, match="baseline key"):
        compare(four_corners(), baseline=("colour", "red"))


def test_a_baseline_must_be_of_the_dimension_that_is_asked_about() -> None:
    with pytest.raises(UsageError, match="expected a baseline such as device=cpu"):
        compare(four_corners(), by="device", baseline=("backend", "numpy"))


@pytest.mark.parametrize(
    ("changed", "caveat"),
    [
        ({"sha256": "00" * 32}, Caveat.DIFFERENT_DATA),
        ({"machine": "other"}, Caveat.DIFFERENT_MACHINES),
        ({"model": None}, Caveat.DIFFERENT_WEIGHTS),
    ],
)
def test_unrequested_differences_are_caveats(changed: dict[str, Any], caveat: Caveat) -> None:
    if "model" in changed:
        changed = {"model": a_record(round=7).model}
    assert other(compare(rounds([2.0] * 3) + fast([1.0] * 3))).caveats == ()
    assert caveat in other(compare(rounds([2.0] * 3) + fast([1.0] * 3, **changed))).caveats


def test_sides_measured_by_another_trainmark_have_a_caveat() -> None:
    old = rounds([2.0] * 3)
    new = fast([1.0] * 3)
    assert Caveat.DIFFERENT_TRAINMARKS not in other(compare([*old, *new])).caveats
    newer = [structs.replace(record, trainmark="2.0") for record in new]
    assert Caveat.DIFFERENT_TRAINMARKS not in other(compare([*old, *newer])).caveats, (
        "nobody knows the old"
    )
    comparison = compare([*(structs.replace(record, trainmark="1.0") for record in old), *newer])
    assert Caveat.DIFFERENT_TRAINMARKS in other(comparison).caveats
    assert Caveat.DIFFERENT_TRAINMARKS not in comparison.groups[0].caveats, (
        "one version measured the reference"
    )


def test_repeats_measured_by_two_trainmarks_have_a_caveat() -> None:
    first, second, third = rounds([2.0] * 3)
    both = [
        structs.replace(first, trainmark="2.0"),
        structs.replace(second, trainmark="1.0"),
        third,
    ]
    (group,) = compare(both).groups
    assert Caveat.DIFFERENT_TRAINMARKS in group.caveats


def test_machines_that_are_asked_about_may_differ() -> None:
    comparison = compare(
        rounds([2.0] * 3) + rounds([1.0] * 3, machine="other", threads=64), by="machine"
    )
    assert other(comparison).caveats == ()


def test_epochs_of_another_length_have_no_ratio() -> None:
    group = other(compare(rounds([2.0] * 3) + fast([1.0] * 3, train_examples=10_000)))
    assert (group.speedup.ratio, group.learning.difference) == (None, None)
    assert Caveat.DIFFERENT_DATA in group.caveats


def accuracies(values: list[float], **arguments: Any) -> list[Record]:
    return [
        a_record(round=number, test_accuracy=value, **arguments)
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.981, 0.982, 0.983], "same"),
        ([0.90, 0.91, 0.90], "differs"),
        ([0.99, 0.93, 0.96], "unclear"),
    ],
)
def test_do_they_learn_the_same_thing(values: list[float], verdict: str) -> None:
    group = other(compare(accuracies([0.980, 0.982, 0.984]) + accuracies(values, backend="torch")))
    assert group.learning.quantity == "test_accuracy"
    assert group.learning.difference == pytest.approx(sum(values) / 3 - 0.982)
    assert group.learning.verdict == verdict


def test_mean_accuracy_includes_a_run_that_learnt_nothing() -> None:
    """What others on the machine do may slow a run down by half, but not keep it from learning."""
    stuck = accuracies([0.97, 0.97, 0.1, 0.97, 0.97], backend="torch")
    group = other(compare(accuracies([0.97] * 5) + stuck))
    assert group.learning.difference == pytest.approx(-0.87 / 5)
    assert group.learning.verdict == "unclear"


def test_a_side_with_diverged_runs_does_not_learn_the_same() -> None:
    diverged = [
        a_record(backend="torch", round=number, status="diverged", test_accuracy=None)
        for number in (3, 4)
    ]
    group = other(
        compare(accuracies([0.97] * 5) + accuracies([0.97] * 3, backend="torch") + diverged)
    )
    assert group.learning.difference == pytest.approx(0)
    assert group.learning.verdict == "unclear"


def test_learning_is_judged_by_training_accuracy_without_a_test() -> None:
    group = other(
        compare(rounds([2.0] * 3, test_accuracy=None) + fast([2.0] * 3, test_accuracy=None))
    )
    assert group.learning.quantity == "train_accuracy"
    assert group.learning.verdict == "same"


def test_two_sides_that_learn_nothing_do_not_learn_the_same() -> None:
    stuck: dict[str, Any] = {"caveats": [Caveat.NOT_LEARNING], "test_accuracy": 0.1}
    assert (
        other(compare(rounds([2.0] * 3, **stuck) + fast([2.0] * 3, **stuck))).learning.verdict
        == "unclear"
    )


def test_the_json_holds_the_keys_of_the_contract() -> None:
    plain = to_plain(compare(rounds([2.0] * 3) + fast([1.0] * 3)).data)
    medians = {
        "samples_per_second",
        "training_seconds",
        "train_accuracy",
        "test_accuracy",
        "train_loss",
        "test_loss",
    }
    assert (
        medians | {"key", "runs", "epoch_seconds", "speedup", "caveats", "learning"}
        <= plain["groups"][1].keys()
    )
    assert plain["groups"][1]["epoch_seconds"].keys() == {"median", "low", "high"}
    assert plain["groups"][1]["speedup"].keys() == {"ratio", "low", "high", "verdict", "of"}


@pytest.mark.parametrize(("slowest", "told"), [(2.3, False), (2.5, True)])
def test_rounds_that_differ_have_a_caveat(slowest: float, told: bool) -> None:
    (group,) = compare(rounds([2.0, 2.1, slowest])).groups
    assert (Caveat.WIDE_SPREAD in group.caveats) is told


def to_target(epochs: list[int], **arguments: Any) -> list[Record]:
    """Runs that reached their target after this many epochs of a second."""
    until = catalog.find("mnist-mlp512").with_schedule(until=Target("test_accuracy", 0.98))
    found = []
    for number, count in enumerate(epochs):
        record = a_record(workload=until, round=number, seconds=(1.0,) * count, **arguments)
        final = structs.replace(record.final, time_to_target_seconds=float(count))
        found.append(structs.replace(record, final=final))
    return found


def test_the_time_to_a_target_has_an_interval() -> None:
    (group,) = compare(to_target([5, 7, 6, 9, 6, 7])).groups
    assert group.reached is not None
    assert (group.reached.runs, group.reached.seconds, group.reached.epochs) == (6, 6.5, 6.5)
    assert (group.reached.low, group.reached.high) == (5.0, 9.0)


def test_a_run_that_missed_the_target_counts_as_never() -> None:
    records = to_target([5, 7, 6])
    missed = [
        structs.replace(each, final=structs.replace(each.final, time_to_target_seconds=None))
        for each in records
    ]
    (group,) = compare([*to_target([4, 4]), *missed]).groups
    assert group.reached is not None
    assert (group.reached.runs, group.reached.seconds, group.reached.low) == (2, math.inf, 4.0)


@pytest.mark.parametrize(
    ("epochs", "faster"),
    [([7, 8, 7, 8], False), ([4, 5, 4, 5], True), ([9, 12, 10, 11], False), ([4, 5], False)],
    ids=["alike", "fewer epochs", "more epochs", "too few runs"],
)
def test_a_side_that_needs_fewer_epochs_does_not_train_alike(
    epochs: list[int], faster: bool
) -> None:
    sides = to_target([7, 8, 8, 7]), to_target(epochs, backend="torch", version="2.8.0")
    timed = [Slice(0, 0, 0.0, 11, 10, 1.0, 1280)]
    alone = [
        structs.replace(side[0], round=9, epochs=[], final=Final(), slices=timed) for side in sides
    ]
    group = other(compare([*sides[0], *sides[1], *alone]))
    assert (Caveat.CONVERGES_FASTER in group.caveats) is faster
