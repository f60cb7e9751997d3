"""Records whose parts come from other valid records: each part fits, their combination may not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from fuzz.records import every_kind
from fuzz.structure import changed, swapped
from fuzz.targets import record as target
from tests.slow import slow
from trainmark.errors import TrainmarkError
from trainmark.record import codec
from trainmark.record.record import Record

PLAIN: dict[str, Any] = {
    name: json.loads(codec.encode(each)) for name, each in every_kind().items()
}
PARTS = [key for key, value in PLAIN["gpu"].items() if isinstance(value, (dict, list))]


def used(*values: dict[str, Any]) -> list[Record]:
    """Do with the records whatever commands do; return those that could be read."""
    found = []
    for value in values:
        try:
            found.append(codec.decode(json.dumps(value).encode(), "r.json"))
        except TrainmarkError as error:
            assert str(error).startswith("r.json "), "it names the file"
    target.use(found, drawing=False, whole_page=False)
    return found


def test_every_kind_is_a_record() -> None:
    pytest.importorskip("altair")
    assert len(used(*PLAIN.values())) == len(PLAIN)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_another_record_is_read_or_refused(part: str) -> None:
    pytest.importorskip("altair")
    others = {json.dumps(each[part]): each[part] for each in PLAIN.values()}
    for value in PLAIN.values():
        for other in others.values():
            if other != value[part]:
                used({**value, part: other}, value)


@pytest.mark.parametrize("seed", [0, 1, *(slow(seed) for seed in range(2, 8))])
def test_swapped_subtrees_are_read_or_refused(seed: int) -> None:
    pytest.importorskip("altair")
    chance = random.Random(seed)
    kinds = list(PLAIN.values())
    for _ in range(25):
        donor = chance.choice(kinds)
        value = swapped(chance.choice(kinds), donor, chance)
        if chance.random() < 0.2:
            value = changed(value, chance)
        used(value, donor)


def test_a_swap_takes_subtrees_and_leaves_both_records() -> None:
    value = {"a": {"b": [1, 2]}, "c": 3}
    donor = {"a": {"b": "other"}, "d": {"c": None}}
    before = json.dumps([value, donor])
    found = {json.dumps(swapped(value, donor, random.Random(seed))) for seed in range(200)}
    assert json.dumps([value, donor]) == before
    assert '{"a": {"b": "other"}, "c": 3}' in found, "from the same place"
    assert '{"a": {"b": [1, 2]}, "c": null}' in found, "of the same name"
    assert len(found) > 10
    assert swapped([], donor, random.Random(0)) != []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("input", {"kind": "tokens"}),
        ("input", {"kind": "tokens", "length": "7"}),
        ("input", {"kind": "tokens", "length": 0}),
        ("input", []),
        ("batches", {}),
        ("batches", {"size": -1}),
        ("batches", {"size": "half"}),
        ("schedule", {"steps": "many"}),
        ("schedule", {"until": 0.97}),
        ("schedule", {"until": {"quantity": "test_accuracy"}}),
        ("schedule", {"until": {"quantity": "test_accuracy", "bound": 97}}),
        ("schedule", {"until": {"quantity": "speed", "bound": 0.5}}),
        ("schedule", "short"),
        ("metrics", {"sample": {}}),
        ("command", "python train.py"),
    ],
)
def test_a_specification_of_other_types_is_foreign(path: str, value: Any) -> None:
    workload = {**PLAIN["target"]["workload"]}
    workload["spec"] = {**workload["spec"], path: value}
    text = json.dumps({**PLAIN["target"], "workload": workload}).encode()
    with pytest.raises(TrainmarkError, match="in its specification"):
        codec.decode(text, "r.json")


def test_keys_that_a_later_version_adds_are_kept() -> None:
    workload = {**PLAIN["target"]["workload"]}
    workload["spec"] = {**workload["spec"], "mood": "good", "schedule": {"new": 1, "steps": 5}}
    record = codec.decode(json.dumps({**PLAIN["target"], "workload": workload}).encode(), "r.json")
    assert record.workload.view.schedule.steps == 5
    assert json.loads(codec.encode(record))["workload"]["spec"] == workload["spec"]


def test_a_specification_is_decoded_once() -> None:
    record = every_kind()["target"]
    assert record.workload.view is record.workload.view
    assert record.workload.workload is record.workload.workload
    assert record.workload.workload.to_data() == record.workload.spec


def test_a_negative_number_of_a_gpu_is_foreign() -> None:
    device = {**PLAIN["gpu"]["device"], "gpu": -5}
    with pytest.raises(TrainmarkError, match="the number of a GPU is negative"):
        codec.decode(json.dumps({**PLAIN["gpu"], "device": device}).encode(), "r.json")


@pytest.mark.parametrize("seconds", ["inf", "nan", 0.0, -1.0])
def test_an_epoch_without_a_pace_is_read(seconds: str | float) -> None:
    pytest.importorskip("altair")
    value = PLAIN["gpu"]
    epochs = [{**epoch, "seconds": seconds} for epoch in value["epochs"]]
    assert len(used({**value, "epochs": epochs}, value)) == 2


@pytest.mark.parametrize("seconds", [{}, {"2": 0.1}, {"2": 0.0, "4": 0.1}, {"2": -1.0, "4": 0.1}])
def test_a_search_without_its_times_is_foreign(seconds: dict[str, float]) -> None:
    search = {"chosen": 2, "default": 4, "step_seconds": seconds}
    with pytest.raises(TrainmarkError, match="a search needs the time"):
        codec.decode(json.dumps({**PLAIN["gpu"], "threads_search": search}).encode(), "r.json")
