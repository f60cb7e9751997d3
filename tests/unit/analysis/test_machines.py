"""Which records are of one machine. The machines are made up; no name, memory or instance here was
seen."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.records import a_record, rounds
from trainmark.analysis.comparison import compare
from trainmark.analysis.groups import group_records
from trainmark.analysis.machines import tell_apart
from trainmark.record.caveats import Caveat
from trainmark.record.record import DeviceRef, Record

T4 = {"instance": "g4dn.xlarge", "region": "eu-west-1"}
A10 = {"instance": "g5.xlarge", "region": "eu-west-1"}


def on(number: int, *, device: DeviceRef | None = None, **machine: Any) -> Record:
    record = a_record(round=number, id=f"r{number}")
    record = structs.replace(record, machine=structs.replace(record.machine, **machine))
    return record if device is None else structs.replace(record, device=device)


def titles(*records: Record) -> list[str]:
    told = tell_apart(records)
    return [told(record).title for record in records]


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": "EPYC"},
        {"usable_cores": 64},
        {"cpu_quota": 1.5},
        {"architecture": "aarch64"},
        {"memory_bytes": 16 << 30},
        {"identity": "0b"},
        {"labels": A10},
        {"labels": T4 | {"region": "us-east-1"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_two_of_one_name_are_not_mixed(other: dict[str, Any]) -> None:
    one = {"labels": T4, "identity": "0a"}
    records = [on(1, **one), on(2, **(one | other)), on(3, **one)]
    assert titles(*records) == ["lab (1)", "lab (2)", "lab (1)"]
    assert titles(*reversed(records)) == ["lab (1)", "lab (2)", "lab (1)"]
    assert [len(group.records) for group in group_records(records)] == [2, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"os": "Linux 7"},
        {"load_before": 0.9},
        {"gpu_driver": "580"},
        {"cpu_turbo": True},
        {"memory_bytes": (8 << 30) + (100 << 20)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_changes_between_two_runs_makes_no_other_machine(changes: dict[str, Any]) -> None:
    assert titles(on(1), on(2, **changes)) == ["lab", "lab"]


def test_a_machine_with_fewer_facts_is_the_one_of_the_same_name() -> None:
    records = [on(1), on(2, labels=T4), on(3, identity="0a")]
    assert titles(*records) == ["lab"] * 3
    assert len(group_records(records)) == 1
    assert tell_apart(records)(records[0]).labels == "instance=g4dn.xlarge, region=eu-west-1"


def test_a_machine_with_fewer_facts_is_separate_if_others_differ() -> None:
    assert titles(on(1), on(2, labels=T4), on(3, labels=A10)) == ["lab (1)", "lab (2)", "lab (3)"]


def test_machines_are_compared_whatever_their_build_and_device() -> None:
    """CPUs are compared with CPUs and accelerators with accelerators: a build for another GPU is
    another version."""
    h200 = DeviceRef("cuda:0", "NVIDIA H200", "accelerator")
    m4 = DeviceRef("mps", "Apple M4", "accelerator")
    records = []
    for name, gpu, version, seconds in (("a", h200, "2.1+cu130", 1.0), ("b", m4, "2.1", 2.0)):
        cpu = rounds([4 * seconds] * 3, machine=name, version=version, group=name)
        records += cpu
        records += [
            structs.replace(each, id=f"{each.id}-g", device=gpu, epochs=slow(each, seconds))
            for each in cpu
        ]
    groups = {
        (group.key.machine, group.key.device): group
        for group in compare(records, by="machine").groups
    }
    assert groups["b", "cpu"].speedup.ratio == pytest.approx(0.5)
    assert groups["b", "mps"].speedup.ratio == pytest.approx(0.5)
    assert groups["a", "cuda:0"].speedup.ratio == 1
    assert {Caveat.DIFFERENT_VERSIONS, Caveat.UNPAIRED} <= set(groups["b", "mps"].caveats)
    assert Caveat.DIFFERENT_MACHINES not in groups["b", "mps"].caveats


def slow(record: Record, seconds: float) -> list[Any]:
    return [structs.replace(epoch, seconds=seconds) for epoch in record.epochs]


def test_a_label_tells_machines_of_one_name_apart() -> None:
    records = [
        on(1, labels={"instance": "small"}),
        on(2, labels={"instance": "large", "site": "a"}),
        on(3),
    ]
    assert titles(*records) == ["lab (1)", "lab (2)", "lab (3)"]
    assert titles(records[1], records[2]) == ["lab", "lab"], (
        "one without labels may be the same machine"
    )
    assert tell_apart(records[1:])(records[2]).labels == "instance=large, site=a"
