"""What is a step, an example, an evaluation and a training, in scripts that are unlike others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.observed import observed
from tests.slow import slow

SCRIPTS = Path(__file__).parent / "scripts" / "seen"


def seen(tmp_path: Path, name: str, *words: str) -> dict[str, Any]:
    """Return the last report of a script."""
    pytest.importorskip("jax" if name.startswith("jax") else "torch")
    run = observed(SCRIPTS / f"{name}.py", *words, folder=tmp_path)
    assert run.code == 0, run.err
    assert not [each for each in run.injected if each.startswith("not ")]
    losses = [loss for each in run.reports for loss in each["losses"]]
    printed = [float(line) for line in run.out.splitlines()]
    return {**run.reports[-1], "losses": losses, "printed": printed}


def test_passes_without_gradients_belong_to_the_steps(tmp_path: Path) -> None:
    found = seen(tmp_path, "rollout")
    assert (found["steps"], found["evaluations"], found["no_grad_passes"]) == (20, 0, 4 * 64)
    assert found["examples_per_step"] == 256
    assert 0 < found["no_grad_seconds"] < found["seconds"]
    assert found["places"]["no_grad"].endswith("rollout.py:15")


@pytest.mark.parametrize(
    ("words", "evaluations"),
    [("", 0), ("predicts", 8), ("predicts ahead", 8), ("twice", 0), ("ahead", 0)],
)
def test_passes_with_gradients_that_no_loss_follows_are_evaluations(
    tmp_path: Path, words: str, evaluations: int
) -> None:
    found = seen(tmp_path, "predicts_with_gradients", *words.split())
    assert (found["steps"], found["examples_per_step"]) == (80, 4)
    assert found["evaluations"] == evaluations
    place = found["places"].get("evaluation", "")
    assert place.endswith("predicts_with_gradients.py:35") == bool(evaluations)


def test_what_every_step_computes_before_its_batch_is_a_part_of_it(tmp_path: Path) -> None:
    found = seen(tmp_path, "predicts_with_gradients", "residual")
    assert (found["steps"], found["evaluations"]) == (20, 0)


@pytest.mark.parametrize("name", ["inference_copy", "closures_then_accumulated"])
def test_losses_and_evaluations_of_other_weights(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, name)
    assert found["steps"] == 40
    assert found["evaluations"] == (4 if name == "inference_copy" else 0)
    assert found["losses"][-1] == pytest.approx(found["printed"][-1])


def test_an_evaluation_after_the_last_step_is_no_part_of_the_training(tmp_path: Path) -> None:
    found = seen(tmp_path, "evaluated_last")
    assert (found["steps"], found["evaluations"]) == (40, 4)
    pipe = tmp_path / "of the observer" / "pipe"
    messages = [json.loads(line) for line in pipe.read_text().splitlines()]
    (apart,) = (each["seconds"] for each in messages if each["event"] == "evaluated")
    assert 0.3 <= apart < found["evaluation_seconds"] - 2 + 0.01


def test_the_loss_at_other_weights_is_not_that_of_the_step(tmp_path: Path) -> None:
    found = seen(tmp_path, "sharpness_aware")
    assert (found["steps"], found["examples_per_step"], found["evaluations"]) == (20, 4, 0)
    assert found["losses"] == pytest.approx(found["printed"])
    names = ("forward", "forward_2", "backward", "backward_2")
    lines = [found["places"][name].rpartition(":")[2] for name in names]
    assert lines == ["12", "20", "13", "20"]


def test_batches_that_are_objects_have_as_many_examples_as_the_sampler_draws(
    tmp_path: Path,
) -> None:
    found = seen(tmp_path, "object_batches")
    assert found["steps"] == 12
    assert found["examples_per_step"] == pytest.approx(10 / 3)


@pytest.mark.parametrize("loaders", ["kept", "made anew"])
def test_another_loader_is_an_evaluation(tmp_path: Path, loaders: str) -> None:
    found = seen(tmp_path, "tested_while_training", loaders)
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (40, 4, 16)
    assert found["no_grad_passes"] == 39 + 4 * 5
    assert found["places"]["evaluation"].endswith("tested_while_training.py:35")


def test_another_tensor_than_that_of_all_steps_is_an_evaluation(tmp_path: Path) -> None:
    found = seen(tmp_path, "held_out_tensor")
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (3, 3, 40)
    assert found["places"]["evaluation"].endswith("held_out_tensor.py:26")


def test_a_tensor_that_is_soon_gone_is_no_data_set(tmp_path: Path) -> None:
    found = seen(tmp_path, "seen_by_an_agent")
    assert (found["steps"], found["evaluations"], found["no_grad_passes"]) == (20, 0, 19)


@pytest.mark.parametrize("by", ["loaders", "loaders, ahead", "functions"])
def test_validation_and_test_are_two_evaluations(tmp_path: Path, by: str) -> None:
    found = seen(tmp_path, "validated_and_tested", by)
    assert found["evaluations"] == 10
    assert found["epochs"] == (0 if by == "functions" else 5)
    # The first ones come before the second step, and the last ones after the last step.
    assert 0 < found["evaluation_in_steps_seconds"] < found["evaluation_seconds"]


@pytest.mark.parametrize(
    ("passes", "evaluations"),
    [
        ("all batches", 1),
        ("the same data", 1),
        ("some batches", 0),
        ("a try", 0),
        ("another network", 0),
    ],
)
def test_what_comes_before_the_first_step(tmp_path: Path, passes: str, evaluations: int) -> None:
    found = seen(tmp_path, "evaluated_first", passes)
    assert (found["steps"], found["evaluations"]) == (5, evaluations)
    assert bool(found["evaluation_seconds"]) == bool(evaluations)
    assert (found["evaluation_seconds"] or 0.0) < 0.9, "the script then sleeps for a second"


def test_what_an_agent_has_seen_is_no_data_set(tmp_path: Path) -> None:
    found = seen(tmp_path, "on_policy")
    assert (found["steps"], found["evaluations"], found["no_grad_passes"]) == (20, 0, 28)
    assert found["no_grad_seconds"] > 0


def test_evaluations_are_unknown_if_no_call_was_seen(tmp_path: Path) -> None:
    found = seen(tmp_path, "calls_forward")
    assert (found["steps"], found["evaluations"]) == (10, None)
    assert "no call" in found["unknown"]["evaluations"]


def test_images_that_get_larger_are_larger_amounts(tmp_path: Path) -> None:
    """Steps that take longer for this reason do not grow."""
    pytest.importorskip("torch")
    run = observed(SCRIPTS / "larger_images.py", folder=tmp_path)
    assert run.code == 0, run.err
    amounts = [amount for _, _, amount in run.step_times]
    assert amounts[0] == 4 * 8 * 8
    assert amounts == sorted(amounts)
    assert 4 * 11 * 11 <= amounts[-1] <= 4 * 12 * 12


def test_one_observation_is_no_batch(tmp_path: Path) -> None:
    found = seen(tmp_path, "policy")
    assert (found["steps"], found["examples_per_step"]) == (30, None)
    assert "dimension" in found["unknown"]["examples_per_step"]


def test_a_loader_that_is_read_once(tmp_path: Path) -> None:
    found = seen(tmp_path, "whole_set")
    assert (found["steps"], found["examples_per_step"], found["unknown"]) == (50, 200, {})


@pytest.mark.parametrize(("number", "steps"), [(5, 30), slow(6, 7), (3, 2), slow(2, 100)])
def test_several_trainings_drop_no_step(tmp_path: Path, number: int, steps: int) -> None:
    found = seen(tmp_path, "several", str(number), str(steps))
    assert found["steps"] == number * steps
    assert found["training_starts"] == [steps * each for each in range(number)]
    assert len(found["losses"]) == number * steps
    assert found["examples_per_step"] == 32


@pytest.mark.slow
def test_another_optimiser_of_the_same_network_goes_on(tmp_path: Path) -> None:
    found = seen(tmp_path, "stages")
    assert (found["steps"], found["training_starts"]) == (80, [0])


def test_a_model_of_keras_that_is_compiled_again_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip("keras")
    found = seen(tmp_path, "keras_stages")
    assert (found["steps"], found["training_starts"]) == (32, [0, 24])


@pytest.mark.parametrize(("words", "planned"), [((), 8), (("again",), None)])
def test_the_planned_steps_of_keras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], planned: int | None
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip("keras")
    found = seen(tmp_path, "keras_resumed", *words)
    assert found["steps"] == (16 if words else 8)
    assert found["planned_steps"] == planned


def test_of_adversaries_the_first_one_counts(tmp_path: Path) -> None:
    found = seen(tmp_path, "adversaries")
    assert (found["steps"], found["training_starts"]) == (60, [0])
    assert found["losses"] == pytest.approx(found["printed"], rel=1e-5)


def test_adversaries_of_several_trials(tmp_path: Path) -> None:
    found = seen(tmp_path, "adversaries_again")
    assert (found["steps"], found["training_starts"]) == (90, [0, 30, 60])


def test_the_accuracy_of_the_training_set_is_an_evaluation(tmp_path: Path) -> None:
    found = seen(tmp_path, "training_accuracy")
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (40, 4, 16)


def test_folds_with_evaluations(tmp_path: Path) -> None:
    found = seen(tmp_path, "folds")
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (150, 30, 16)
    assert found["training_starts"] == [0, 30, 60, 90, 120]
    assert found["loader_wait_seconds"] > 0


def test_folds_that_take_turns(tmp_path: Path) -> None:
    found = seen(tmp_path, "folds_in_turns")
    assert (found["steps"], found["evaluations"], found["epochs"]) == (66, 6, None)
    assert found["training_starts"] == [0, 11, 22]


def test_another_optimiser_in_each_step_is_one_training(tmp_path: Path) -> None:
    found = seen(tmp_path, "new_optimizer")
    assert (found["steps"], found["training_starts"]) == (60, [0])
    assert found["examples_per_step"] == 32


def test_a_closure_is_one_step_with_one_loss_and_one_batch(tmp_path: Path) -> None:
    found = seen(tmp_path, "closure")
    assert (found["steps"], found["examples_per_step"]) == (20, 64)
    assert len(found["losses"]) == 20


def test_each_backward_pass_adds_examples(tmp_path: Path) -> None:
    found = seen(tmp_path, "several_passes", "accumulation")
    assert (found["steps"], found["examples_per_step"]) == (30, 64)


def test_two_networks_that_compute_one_tensor_compute_the_same_examples(tmp_path: Path) -> None:
    found = seen(tmp_path, "several_passes", "one tensor")
    assert (found["steps"], found["examples_per_step"]) == (30, 32)


@pytest.mark.parametrize("passes", ["time", "triplet", "in place"])
def test_passes_before_one_backward_pass_may_be_of_the_same_examples(
    tmp_path: Path, passes: str
) -> None:
    found = seen(tmp_path, "several_passes", passes)
    assert (found["steps"], found["examples_per_step"]) == (30, None)
    assert "several forward passes" in found["unknown"]["examples_per_step"]


@pytest.mark.parametrize("name", ["masked", "time_first"])
def test_rows_that_may_be_no_examples_are_unknown(tmp_path: Path, name: str) -> None:
    found = seen(tmp_path, name)
    assert (found["steps"], found["examples_per_step"]) == (30, None)
    assert found["unknown"]


def test_an_evaluation_that_is_given_its_own_metrics_is_no_step(tmp_path: Path) -> None:
    found = seen(tmp_path, "jax_metrics")
    assert (found["steps"], found["examples_per_step"]) == (30, 16)
    # Before the first step, it isn't known what the weights are.
    assert found["evaluations"] == 2
    assert found["places"]["evaluation"].endswith("jax_metrics.py:34")
    assert found["losses"][-1] < found["losses"][0]


@pytest.mark.parametrize(
    ("name", "compiles"), [("jax_in_a_loop", 0), ("jax_defined_in_a_loop", 10)]
)
def test_a_function_that_is_jitted_in_a_loop_is_one(
    tmp_path: Path, name: str, compiles: int
) -> None:
    found = seen(tmp_path, name)
    assert (found["steps"], found["examples_per_step"]) == (12, 16)
    assert found["step_compiles"] == compiles
    assert (found["compile_seconds"] > 0) == bool(compiles)


@pytest.mark.parametrize(
    ("name", "sign"),
    [("adversaries", "several optimisers step in turn"), ("agent", "from 5 to 11 forward passes")],
)
def test_a_loss_that_need_not_fall_says_nothing_about_learning(
    tmp_path: Path, name: str, sign: str
) -> None:
    assert sign in seen(tmp_path, name)["unknown"]["learning"]


@pytest.mark.parametrize(
    "name", ["two_parts", "accumulated", "new_optimizer", "closure", "training_accuracy"]
)
def test_a_loss_that_should_fall_shows_learning(tmp_path: Path, name: str) -> None:
    assert "learning" not in seen(tmp_path, name)["unknown"]
