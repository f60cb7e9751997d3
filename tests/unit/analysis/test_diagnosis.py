"""Every cause of the closed list from the facts that show it, and nothing from facts that don't."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from trainmark.analysis.diagnosis import DO, Replay, diagnose
from trainmark.record.inspection import OddExample, StepInspection, Tensor

KERNELS = ("dense1.kernel", "dense2.kernel")


def tensor(kind: Any, name: str, **changes: Any) -> Tensor:
    return replace(Tensor(kind, name, finite=True, largest=1.0, zeros=0.0), **changes)


def opened(step: int = 0, **changes: Any) -> StepInspection:
    """A healthy step."""
    values: dict[str, Any] = {
        "step": step,
        "loss": 2.3,
        "tensors": (
            tensor("input", "images"),
            *(tensor("weight", name) for name in KERNELS),
            tensor("activation", "dense1"),
            tensor("activation", "relu1", dead=0.1),
            tensor("logit", "dense2"),
            tensor("loss", "softmax-cross-entropy"),
            *(tensor("gradient", name, largest=0.01) for name in reversed(KERNELS)),
        ),
        "reference_loss": 2.3,
        "gap": 4.0,
        "bad_labels": (),
        "unchanged": (),
        "finite_after": True,
        "moved": dict.fromkeys(KERNELS, 0.01),
        "alone": (),
    }
    return StepInspection(**(values | changes))


def replay(*steps: StepInspection, **changes: Any) -> Replay:
    values: dict[str, Any] = {
        "losses": (2.3, 2.2, 2.1),
        "failed_at": None,
        "opened": steps or (opened(),),
        "loss_kind": "softmax-cross-entropy",
        "precision": "fp32",
        "classes": 10,
    }
    return Replay(**(values | changes))


def with_tensor(step: int, kind: str, name: str, **changes: Any) -> StepInspection:
    """A step one of whose tensors is another."""
    healthy = opened(step)
    tensors = tuple(
        replace(each, **changes) if (each.kind, each.name) == (kind, name) else each
        for each in healthy.tensors
    )
    return opened(step, tensors=tensors)


def test_a_healthy_training_has_no_cause() -> None:
    assert diagnose(replay()).cause == "not-found"


def test_a_label_that_names_no_class() -> None:
    found = diagnose(replay(opened(7, bad_labels=(10,))))
    assert (found.cause, found.step, found.where) == ("labels-out-of-range", 7, "labels")
    assert "10" in found.evidence[0]


@pytest.mark.parametrize(
    "words",
    [
        "IndexError: Target 10 is out of bounds.",
        "RuntimeError: index 10 is out of bounds for dimension 0 with size 10",
        "InvalidArgumentError: Received a label value of 10 which is outside the valid range of "
        "[0, 10).",
    ],
)
def test_a_framework_that_refuses_a_label(words: str) -> None:
    found = diagnose(replay(losses=(), opened=(), stopped=words))
    assert found.cause == "labels-out-of-range"
    assert words in found.evidence[0]


@pytest.mark.parametrize(
    "words",
    [
        "IndexError: list index out of range",
        "RuntimeError: index 7 is out of bounds for dimension 0 with size 3",
    ],
)
def test_any_other_index_is_not_a_label(words: str) -> None:
    assert diagnose(replay(losses=(), opened=(), stopped=words)).cause == "not-found"


def test_a_replay_that_ran_out_of_memory_has_no_diagnosis() -> None:
    found = diagnose(replay(losses=(), opened=(), stopped="out of memory"))
    assert found.cause == "not-found"
    assert "out of memory" in found.evidence[0]


def test_an_image_that_is_not_finite_for_the_reference_too() -> None:
    found = diagnose(replay(with_tensor(3, "input", "images", finite=False), failed_at=3))
    assert (found.cause, found.step) == ("nan-in-data", 3)


def test_an_image_that_only_the_backend_spoils() -> None:
    alone = (OddExample(4711, math.nan, 2.31),)
    found = diagnose(replay(opened(2, loss=math.nan, alone=alone), failed_at=2))
    assert (found.cause, found.where) == ("nan-in-data", "input")
    assert "4711" in found.evidence[0]


def test_half_precision_that_ran_out() -> None:
    grown = with_tensor(5, "activation", "dense1", largest=1e5)
    failed = StepInspection(**{**grown.__dict__, "loss": math.nan})
    found = diagnose(replay(failed, failed_at=5, precision="fp16"))
    assert (found.cause, found.where) == ("precision-overflow", "activation dense1")
    assert diagnose(replay(failed, failed_at=5, precision="fp32")).cause == "not-found"


@pytest.mark.parametrize(("gap", "cause"), [(95.0, "softmax-underflow"), (20.0, "not-found")])
def test_a_softmax_that_underflowed_needs_the_gap(gap: float, cause: str) -> None:
    step = opened(9, loss=math.nan, gap=gap)
    found = diagnose(replay(step, failed_at=9, loss_kind="softmax-then-log"))
    assert found.cause == cause


def test_a_fused_softmax_can_not_underflow() -> None:
    assert diagnose(replay(opened(9, loss=math.nan, gap=95.0), failed_at=9)).cause == "not-found"


def test_a_frozen_layer_that_has_a_gradient() -> None:
    step = opened(unchanged=("dense1.kernel", "dense1.bias"))
    found = diagnose(replay(step, opened(2, unchanged=("dense1.kernel",))))
    assert (found.cause, found.where) == ("nothing-is-training", "update dense1.kernel")


def test_a_layer_that_moves_later_is_not_frozen() -> None:
    assert diagnose(replay(opened(unchanged=("dense1.kernel",)), opened(2))).cause == "not-found"


def test_a_gradient_that_is_zero() -> None:
    still = with_tensor(0, "gradient", "dense1.kernel", largest=0.0)
    still = StepInspection(**{**still.__dict__, "unchanged": ("dense1.kernel",)})
    found = diagnose(replay(still))
    assert (found.cause, found.where) == ("nothing-is-training", "gradient dense1.kernel")


def test_relus_that_are_dead() -> None:
    found = diagnose(replay(with_tensor(2, "activation", "relu1", dead=0.97)))
    assert (found.cause, found.where) == ("dead-relus", "activation relu1")
    assert "97 %" in found.evidence[0]


def test_steps_that_are_too_large() -> None:
    found = diagnose(
        replay(opened(1, moved={"dense1.kernel": 40.0}), losses=(2.3, 900.0, math.inf), failed_at=2)
    )
    assert (found.cause, found.step) == ("learning-rate", 1)
    assert "2.3 to 900" in found.evidence[0]


def test_steps_that_are_too_small() -> None:
    found = diagnose(replay(opened(moved={"dense1.kernel": 1e-9}), losses=(2.3, 2.3, 2.3)))
    assert found.cause == "learning-rate"
    assert "larger" in found.do


def test_every_cause_says_what_to_do() -> None:
    assert all(words.endswith(".") for words in DO.values())
