"""Which records are repeats of each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import structs

from tests.records import a_command, a_record, rounds
from trainmark.analysis.groups import group_records
from trainmark.record.record import BackendRef, DeviceRef, Record, Status
from trainmark.workload import catalog


def test_rounds_of_one_thing_are_one_group_oldest_first() -> None:
    records = rounds([1.0, 2.0, 3.0])
    (group,) = group_records(reversed(records))
    assert [record.round for record in group.records] == [0, 1, 2]


@pytest.mark.parametrize(
    "other",
    [
        {"backend": "torch"},
        {"version": "2.2.0"},
        {"style": "idiomatic"},
        {"device": "cuda:0"},
        {"machine": "other"},
        {"python": "old"},
        {"precision": "bf16"},
        {"threads": 1},
        {"threads": None},
        {"sha256": "00" * 32},
        {"train_examples": 10_000},
        {"dataset": "synthetic-digits"},
        {"memory_fraction": 0.5},
        {"weights_from": "another"},
        {"protocol": "continued"},
        {"workload": catalog.find("mnist-mlp512").with_schedule(epochs=20)},
        {"workload": "mnist-mlp128"},
    ],
)
def test_whatever_must_be_equal_separates(other: dict[str, Any]) -> None:
    assert len(group_records([a_record(), a_record(id="second", **other)])) == 2


def test_a_machine_that_got_another_processor_is_another_machine() -> None:
    before = a_record()
    machine = msgspec.structs.replace(before.machine, cpu="EPYC 9654")
    after = msgspec.structs.replace(before, id="second", machine=machine)
    assert len(group_records([before, after])) == 2


def test_a_record_given_twice_counts_once() -> None:
    (group,) = group_records([a_record(train_loss=math.nan), a_record(train_loss=math.nan)])
    assert len(group.records) == 1


def test_a_failed_run_is_counted_with_the_group_it_belongs_to() -> None:
    failed = a_record(round=1, status="failed", version=None)
    (group,) = group_records([a_record(), failed])
    assert (len(group.records), group.failed) == (1, 1)


def test_a_run_that_failed_before_it_saw_its_device_is_counted() -> None:
    unseen = DeviceRef("cuda:0", "Xeon 8481C", "cpu")
    failed = a_record(round=1, status="failed", device="cuda:0", version=None)
    failed = msgspec.structs.replace(failed, device=unseen)
    (group,) = group_records([a_record(device="cuda:0"), failed])
    assert (len(group.records), group.failed) == (1, 1)


@pytest.mark.parametrize("status", ["failed", "timeout", "interrupted"])
def test_a_group_of_failures_alone_is_still_there(status: Any) -> None:
    first, second = group_records(
        [a_record(), a_record(backend="torch", version=None, status=status)]
    )
    assert (len(second.records), second.failed) == (0, 1)
    assert first.failed == 0


def a_torch_script(round: int = 0, **changes: Any) -> Record:
    """A command whose framework was seen."""
    return msgspec.structs.replace(
        a_command(round=round, **changes), backend=BackendRef("torch", "2.8.0", None, None, None)
    )


def test_a_command_that_failed_early_is_counted_with_its_side() -> None:
    (group,) = group_records([a_torch_script(), a_command(round=1, status="failed")])
    assert (len(group.records), group.failed) == (1, 1)


def test_a_command_that_failed_early_and_was_repeated_succeeded() -> None:
    redone = [a_torch_script(number) for number in range(2)]
    (group,) = group_records([redone[0], a_command(round=1, status="interrupted"), redone[1]])
    assert (len(group.records), group.failed) == (2, 0)


def failed_after_slices(status: Status, record: Callable[..., Record] = a_record) -> list[Record]:
    """The two records of a run that ended otherwise than planned after its slices."""
    opening = record(epochs=[])
    return [
        opening,
        structs.replace(record(status=status), id=f"{opening.id}-training", slices_in=opening.id),
    ]


@pytest.mark.parametrize("record", [a_record, a_command])
def test_a_run_that_failed_after_its_slices_is_one_failed_run(
    record: Callable[..., Record],
) -> None:
    (group,) = group_records(failed_after_slices("failed", record))
    assert (group.runs, group.failed, group.broken) == (0, 1, 1)
    assert len(group.records) == 1, "its slices are kept"


def test_a_run_interrupted_after_its_slices_counts_by_its_slices() -> None:
    (group,) = group_records(failed_after_slices("interrupted"))
    assert (group.runs, group.failed, group.broken) == (1, 0, 0)


@pytest.mark.parametrize("record", [a_record, a_command])
def test_a_failed_run_that_was_repeated_does_not_count_as_failed(
    record: Callable[..., Record],
) -> None:
    (group,) = group_records([*failed_after_slices("failed", record), record(id="repeated")])
    assert (group.runs, group.failed) == (1, 0)
