"""Results of a scale plan, from made-up records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from tests.records import WARM_UP, a_record
from trainmark.analysis.efficiency import efficiency, peaks_by_place
from trainmark.analysis.groups import group_records
from trainmark.analysis.scale_results import AGREEMENT_BOUND, results
from trainmark.record.caveats import Caveat
from trainmark.record.record import Group, Outcome, Peaks, Record, Slice, Spread

STEPS = 20


def of_layout(
    data: int,
    pipeline: int = 1,
    *,
    seconds: float = 1.0,
    round: int = 0,
    losses: Sequence[float] = (2.0, 1.0),
    apart: bool = False,
    rank: int | None = None,
    **changes: Any,
) -> Record:
    """A run: round 0 trains to the end, any other has slices of this many seconds."""
    spread = Spread(data, pipeline, all_reduce=not apart)
    group = Group("plan", "plan", "scale", rank=rank, world=data * pipeline, spread=spread)
    if round:
        timed = [
            Slice(block, 2 * block + half, 0.0, STEPS + 1, STEPS, seconds, STEPS * 128)
            for block in range(4)
            for half in range(2)
        ]
        record = a_record(workload="mnist-mlp512", seconds=(), round=round, slices=timed, **changes)
    else:
        record = a_record(
            workload="mnist-mlp512", seconds=(WARM_UP,), step_losses=list(losses), **changes
        )
    tail = f"{data}{pipeline}{apart}{rank}"
    return structs.replace(record, id=f"{record.id}-{tail}", group=group)


def test_efficiency_is_paired_within_rounds() -> None:
    # the second round is twice as slow for both, which changes nothing
    records = [
        of_layout(data, seconds=seconds * round, round=round)
        for round in (1, 2, 3)
        for data, seconds in ((1, 1.0), (2, 0.8))
    ]
    one, two = results(records)
    assert (one.data, two.data) == (1, 2)
    assert one.efficiency is not None and one.efficiency.value == pytest.approx(1.0)
    assert two.efficiency is not None and two.efficiency.value == pytest.approx(1 / (2 * 0.8))
    assert two.efficiency.low == pytest.approx(two.efficiency.high)
    assert two.speedup is not None and (two.speedup.verdict, two.speedup.of) == ("faster", "slice")
    assert two.step_seconds is not None and two.step_seconds.value == pytest.approx(1.6 / STEPS)
    assert two.samples_per_second is not None and two.samples_per_second.value == pytest.approx(
        128 * STEPS / 1.6
    )


def test_communication_is_what_goes_without_it() -> None:
    records = [
        record
        for round in (1, 2, 3)
        for record in (
            of_layout(1, round=round),
            of_layout(2, seconds=1.0, round=round),
            of_layout(2, seconds=0.6, round=round, apart=True),
        )
    ]
    _, two = results(records)
    assert two.communication is not None and two.communication.value == pytest.approx(0.4)
    assert two.runs == 3


def test_one_device_has_no_communication() -> None:
    (one,) = results([of_layout(1)])
    assert one.communication is None
    assert one.agreement is None


@pytest.mark.parametrize(
    ("loss", "passed"), [(1.0, True), (1.0 + 9e-10, True), (1.0 + 2e-9, False)]
)
def test_losses_may_differ_by_rounding_alone(loss: float, passed: bool) -> None:
    _, two = results([of_layout(1), of_layout(2, losses=(2.0, loss))])
    assert two.agreement is not None
    assert two.agreement.passed is passed
    assert two.agreement.parts_at_step == (None if passed else 1)
    assert two.agreement.largest_difference == pytest.approx(abs(loss - 1.0))
    assert two.agreement.tolerance == AGREEMENT_BOUND


@pytest.mark.parametrize(("broken", "said"), [(1, "one device"), (2, "several devices")])
def test_losses_of_a_run_that_failed_do_not_agree(broken: int, said: str) -> None:
    ends = {broken: {"status": "failed", "outcome": Outcome("failed", "killed")}}
    _, two = results([of_layout(data, **ends.get(data, {})) for data in (1, 2)])
    assert two.agreement is not None and not two.agreement.passed
    assert two.agreement.reason == f"{said}: failed, killed"


def test_without_runs_for_the_losses_nothing_is_judged() -> None:
    _, two = results([of_layout(data, round=round) for round in (1, 2) for data in (1, 2)])
    assert two.agreement is None


def test_no_step_in_common_is_no_agreement() -> None:
    _, two = results([of_layout(1, losses=()), of_layout(2, losses=())])
    assert two.agreement is not None and not two.agreement.passed


def test_a_failure_without_sums_is_reported_too() -> None:
    failed = of_layout(
        2, round=1, apart=True, status="failed", outcome=Outcome("failed", "rank 0 died")
    )
    _, two = results([of_layout(1, round=1), of_layout(2, round=1), failed])
    assert (two.runs, two.failed, two.reason) == (1, 1, "failed: rank 0 died")


def test_compare_keeps_layouts_apart_and_counts_their_failures() -> None:
    records = [of_layout(1, round=round) for round in range(1, 4)]
    records += [
        of_layout(2, round=1),
        *(of_layout(2, round=round, status="failed") for round in (2, 3)),
    ]
    records += [of_layout(2, round=1, rank=0), of_layout(2, round=1, apart=True)]
    records += [
        of_layout(1, precision="fp64"),
        of_layout(2, precision="fp64"),
    ]  # these exist only for their losses
    found = {
        group.key.layout: (len(group.records), group.failed) for group in group_records(records)
    }
    assert found == {"1×1": (3, 0), "2×1": (1, 2), "2×1, without averaging": (1, 0)}


def test_several_devices_have_no_share_of_one_devices_peak() -> None:
    peaks = Peaks(1e12, 1e11)
    one = of_layout(1, peaks=peaks)
    two = of_layout(2, peaks=peaks)
    limits = peaks_by_place([one, two])
    assert efficiency(one, 1000.0, limits) is not None
    assert efficiency(two, 1000.0, limits) is None


def test_a_run_without_sums_is_never_taken_for_the_training() -> None:
    _, two = results([of_layout(1), of_layout(2), of_layout(2, apart=True, losses=(2.0, 5.0))])
    assert two.agreement is not None and two.agreement.passed


def test_records_of_single_ranks_are_ignored() -> None:
    records = [of_layout(1, round=1), *(of_layout(2, round=1, rank=rank) for rank in (None, 0, 1))]
    _, two = results(records)
    assert two.runs == 1


def test_only_the_first_hundred_losses_are_compared() -> None:
    records = [of_layout(1, losses=[1.0] * 101), of_layout(2, losses=[1.0] * 100 + [7.0])]
    _, two = results(records)
    assert two.agreement is not None and two.agreement.passed and two.agreement.steps == 100


def test_a_failed_layout_keeps_its_reason() -> None:
    failed = of_layout(
        2, status="failed", outcome=Outcome("failed", "rank 1 was killed by SIGKILL")
    )
    _, two = results([of_layout(1), failed])
    assert (two.runs, two.failed, two.efficiency, two.step_seconds) == (0, 1, None, None)
    assert two.reason == "failed: rank 1 was killed by SIGKILL"
    assert two.batch == 128


def test_layouts_come_fewest_devices_first() -> None:
    found = results([of_layout(2, 2), of_layout(1, 2), of_layout(2), of_layout(1)])
    assert [(each.data, each.pipeline) for each in found] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_where_others_disturbed_most_blocks_there_is_no_verdict() -> None:
    records = [
        of_layout(data, seconds=1 / data, round=round) for round in (1, 2, 3) for data in (1, 2)
    ]
    disturbed = [
        structs.replace(
            record, slices=[structs.replace(each, others_share=0.5) for each in record.slices]
        )
        for record in records
    ]
    assert [each.speedup and each.speedup.verdict for each in results(records)] == [
        "same",
        "faster",
    ]
    _, two = results(disturbed)
    assert two.speedup is not None and two.speedup.verdict == "unclear"
    assert Caveat.TOO_DISTURBED in two.caveats
