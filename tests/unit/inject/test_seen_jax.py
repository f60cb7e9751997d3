"""What is a step, an evaluation and a training, in scripts with JAX that are unlike others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow import slow
from tests.unit.inject.test_seen import SCRIPTS, seen


@pytest.mark.parametrize(
    "name",
    [
        "warmed up",
        "no change at first",
        "few weights",
        slow("norms"),
        slow("passed through"),
        slow("decayed outside"),
        "applied outside",
        "not jitted",
    ],
)
def test_each_step_counts_with_its_loss(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, "jax_steps", name)
    assert found["steps"] == 20
    if name != "not jitted":
        assert found["examples_per_step"] == 8
        assert len(found["losses"]) == 20
    assert found["losses"][-1] < found["losses"][0]


def test_gradients_of_two_batches_are_one_step(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_steps", "added up")
    assert (found["steps"], found["evaluations"]) == (20, 0)


def test_gradients_of_the_input_are_no_training(tmp_path: Path) -> None:
    from tests.observed import observed

    run = observed(SCRIPTS / "jax_steps.py", "saliency", folder=tmp_path)
    assert (run.code, run.steps) == (0, 0)


@pytest.mark.parametrize("name", ["seeds", "donated", slow("same start"), slow("factory")])
def test_other_weights_are_another_training(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, "jax_trials", name)
    assert (found["steps"], found["training_starts"]) == (30, [0, 10, 20])


@pytest.mark.parametrize(
    "name",
    [
        "optimiser anew",
        slow("restored"),
        slow("averaged"),
        "clients",
        slow("in turns"),
        slow("line search"),
    ],
)
def test_weights_that_may_go_on_are_one_training(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, "jax_trials", name)
    assert found["steps"] >= 29
    assert found["training_starts"] == [0]


def test_an_evaluation_that_is_not_jitted_is_no_step(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_evaluated", "accuracy")
    assert (found["steps"], found["evaluations"]) == (60, 2)
    assert found["places"]["evaluation"].endswith("jax_evaluated.py:52")
    assert "evaluation_2" not in found["places"]
    assert found["evaluation_seconds"] > 0
    assert found["compile_seconds"] == 0
    assert found["sync_seconds"] < found["evaluation_seconds"] / 10


@pytest.mark.parametrize("kind", ["jitted", "not jitted"])
def test_steps_that_are_queued_are_no_part_of_the_evaluation_that_waits_for_them(
    tmp_path: Path, kind: str
) -> None:
    found = seen(tmp_path, "jax_queued", kind)
    assert (found["steps"], found["evaluations"]) == (40, 4)
    assert found["evaluation_seconds"] < found["seconds"], "it would be many times as long"


@pytest.mark.parametrize("kind", ["jitted", "not jitted"])
def test_a_long_evaluation_is_no_part_of_the_steps(tmp_path: Path, kind: str) -> None:
    found = seen(tmp_path, "jax_queued", kind, "long")
    assert (found["steps"], found["evaluations"]) == (40, 4)
    assert found["evaluation_seconds"] > found["seconds"] / 10


@pytest.mark.parametrize("kind", ["read at the end", "not read"])
def test_steps_that_are_queued_until_the_end_take_as_long_as_they_do(
    tmp_path: Path, kind: str
) -> None:
    found = seen(tmp_path, "jax_queued", kind)
    assert (found["steps"], found["evaluations"]) == (40, 0)
    # The script's own process would only have queued them.
    assert found["between_seconds"] < found["seconds"] / 10
    if kind == "read at the end":
        (taken,) = found["printed"]
        assert found["seconds"] > taken / 2


def test_what_follows_the_last_read_of_an_evaluation_is_no_part_of_it(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_evaluated", "plotted")
    assert (found["steps"], found["evaluations"]) == (60, 3)
    assert found["evaluation_seconds"] < found["between_seconds"]


@pytest.mark.parametrize("name", ["norms", "every step", "pauses", "printed", "clipped"])
def test_what_else_is_between_steps_is_no_evaluation(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, "jax_evaluated", name)
    assert (found["steps"], found["evaluations"]) == (60, 0)
    assert 0 < found["between_seconds"] <= found["seconds"]
    if name == "every step":
        assert 57 <= max(found["step_reads"].values()) <= 59


@pytest.mark.parametrize(
    "name",
    ["gradients of a jitted function", "traced between", "lowered first", "static arguments"],
)
def test_calls_that_are_traced_or_static_are_passed_on(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, "jax_calls", name)
    assert (found["steps"], found["evaluations"]) == (20, name == "static arguments")
    assert "eager" not in found["places"]
    assert found["losses"][-1] < found["losses"][0]


def test_the_thread_that_computes_gradients_is_observed(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_calls", "another thread")
    assert (found["steps"], found["examples_per_step"]) == (20, 8)


def test_losses_that_were_donated_are_left_out(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_calls", "donated losses")
    assert (found["steps"], found["losses"]) == (20, [])


def test_weights_are_not_kept_alive(tmp_path: Path) -> None:
    assert seen(tmp_path, "jax_calls", "not kept")["printed"] == [0]


@pytest.mark.parametrize(
    ("name", "evaluations"),
    [
        ("environment", 18),
        ("clusters", 0),
        ("metrics of evaluations", 2),
        ("averages", 2),
        slow("metrics in the loop", 2),
        ("two networks", 2),
    ],
)
def test_other_functions_with_a_state_are_no_steps(
    tmp_path: Path, name: str, evaluations: int
) -> None:
    found = seen(tmp_path, "jax_others", name)
    assert (found["steps"], found["training_starts"]) == (20, [0])
    assert found["evaluations"] == evaluations
    assert found["places"]["step"].endswith("jax_others.py:55")


def test_examples_of_a_loop_over_batches_are_unknown(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_others", "scan")
    assert (found["steps"], found["examples_per_step"]) == (20, None)
    assert "loops over batches" in found["unknown"]["examples_per_step"]
