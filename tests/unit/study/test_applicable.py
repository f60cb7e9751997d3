"""Which changes apply to a script."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from trainmark.analysis.causes import Found
from trainmark.analysis.experiments import OF_CAUSES
from trainmark.record.observed import Observed
from trainmark.study.explain import applicable

SEEN = Observed("torch", (), 101, 2.0)


def test_a_rare_operation_is_named_with_its_share_of_the_time() -> None:
    seen = dataclasses.replace(SEEN, saving_seconds=0.5, evaluation_seconds=2.0, evaluations=1)
    said = applicable.why_rare(seen, 1, 0.5)
    assert said == "12 % of the time, but too rare to measure", "saving is in the steps"
    _, _, unsuitable = applicable.choose(seen, {"graded": True}, 60.0)
    assert unsuitable["no-grad"] == "50 % of the time, but too rare to measure"


def test_of_a_training_in_one_call_no_time_is_known() -> None:
    changes, _, _ = applicable.choose(Observed("keras", (), 8, 0.0), {}, 120.0)
    assert "same-batch" in changes


def test_a_script_in_bf16_is_not_offered_another_precision() -> None:
    seen = dataclasses.replace(SEEN, precision="bfloat16", device="cuda:0")
    changes, _, unsuitable = applicable.choose(seen, {}, 60.0)
    for change in ("bf16", "fp16", "tf32", "fp32"):
        assert unsuitable[change] == "it computes in bfloat16"
        assert change not in changes


@pytest.mark.parametrize(
    ("slow", "first"),
    [
        ({}, ["same-batch", "fused"]),
        ({"saving_seconds": 1.0, "saves": 100}, ["no-saves", "same-batch"]),
        ({"loader_wait_seconds": 1.0}, ["same-batch", "batch=8"]),
    ],
    ids=["nothing", "saving", "loader"],
)
def test_what_changes_a_large_part_is_tried_first(
    monkeypatch: pytest.MonkeyPatch, slow: dict[str, Any], first: list[str]
) -> None:
    monkeypatch.setattr(applicable, "usable_core_numbers", lambda: (0, 1))
    seen = dataclasses.replace(SEEN, precision="float32", **slow)
    changes, _, _ = applicable.choose(seen, {"workers": 0, "fused": False}, 60.0)
    assert changes[:2] == first


@pytest.mark.parametrize(("workers", "offered"), [(0, True), (1, True), (2, False), (16, False)])
def test_no_more_workers_than_there_already_are_are_offered(
    monkeypatch: pytest.MonkeyPatch, workers: int, offered: bool
) -> None:
    monkeypatch.setattr(applicable, "usable_core_numbers", lambda: (0, 1))
    changes, _, unsuitable = applicable.choose(SEEN, {"workers": workers}, 60.0)
    assert ("workers=2" in changes) is offered
    assert (unsuitable.get("workers") == f"the loader already has {workers} workers") is not offered


def test_without_a_loader_its_changes_do_not_apply() -> None:
    _, _, unsuitable = applicable.choose(SEEN, {}, 60.0)
    for change in ("workers", "prefetch", "batch"):
        assert unsuitable[change] == "no DataLoader found"
    changes, _, _ = applicable.choose(SEEN, {"workers": 0}, 60.0)
    assert {"workers", "prefetch", "batch"} <= {change.partition("=")[0] for change in changes}


def test_what_an_option_would_try_is_left_out_not_unsuitable() -> None:
    changes, left_out, unsuitable = applicable.choose(SEEN, {}, 60.0)
    assert set(left_out) == {"compile", "fp16"}
    assert "--seconds 300" in left_out["compile"]
    assert not set(left_out) & {*changes, *unsuitable}
    changes, left_out, _ = applicable.choose(SEEN, {}, 300.0)
    assert "compile" in changes
    assert "compile" not in left_out


def test_a_requested_change_is_tried_whether_it_applies_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(applicable, "usable_core_numbers", lambda: (0, 1))
    asked = ["fp16", "workers", "batch=4", "threads", "line"]
    assert applicable.choose(SEEN, {}, 60.0, asked) == (
        ["fp16", "workers=2", "batch=4", "threads=1"],
        {},
        {},
    )


def test_few_changes_are_tried_with_jax() -> None:
    seen = dataclasses.replace(SEEN, framework="jax", syncs={"a.py:3 float()": 100})
    changes, _, unsuitable = applicable.choose(seen, {}, 60.0)
    assert changes == ["no-sync", "donate"]
    assert unsuitable["bf16"] == "trainmark can't make this change to a JAX script"
    asked, left_out, _ = applicable.choose(seen, {}, 60.0, ["bf16", "donate"])
    assert asked == ["donate"]
    assert left_out == {"bf16": "trainmark can't make this change to a JAX script"}
    outside = dataclasses.replace(seen, places={"outside": "a.py:9"})
    changes, _, unsuitable = applicable.choose(outside, {}, 60.0)
    assert changes == ["no-sync"]
    assert "outside of jitted functions" in unsuitable["donate"]


def test_the_cure_of_a_known_cause_is_tried_first() -> None:
    seen = Observed("torch", (), 100, 1.0, threads=1, device="cpu", precision="float32")
    cause = Found("anomaly", "It is on", "Turn it off", "", changes=("no-anomaly", "fused"))
    facts = {"workers": 0, "fused": False}
    changes, _, unsuitable = applicable.choose(seen, facts, 60.0, causes=[cause])
    assert changes[:2] == ["no-anomaly", "fused"]
    assert len(changes) == len(set(changes))
    without, *_ = applicable.choose(seen, facts, 60.0)
    assert set(without) == {*changes} - {"no-anomaly"}
    assert not set(OF_CAUSES) & unsuitable.keys(), "they would be a long list of what is not wrong"
