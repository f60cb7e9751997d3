"""Steps of scripts that change their weights without an optimiser of PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.observed import observed
from tests.unit.inject.test_seen import SCRIPTS, seen


@pytest.mark.parametrize("how", ["in place", "data", "accumulated"])
def test_weights_that_a_script_changes_show_its_steps(tmp_path: Path, how: str) -> None:
    found = seen(tmp_path, "by_hand", how)
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (20, 4, 8)
    assert found["epochs"] == 4
    assert found["training_starts"] == [0]
    if how != "accumulated":
        assert found["losses"] == pytest.approx(found["printed"])


def test_weights_of_no_module_show_steps(tmp_path: Path) -> None:
    found = seen(tmp_path, "by_hand", "tensors")
    assert (found["steps"], found["evaluations"]) == (20, None)
    assert found["losses"] == pytest.approx(found["printed"])


def test_two_trainings_without_an_optimizer_are_two(tmp_path: Path) -> None:
    found = seen(tmp_path, "by_hand", "twice")
    assert (found["steps"], found["evaluations"], found["examples_per_step"]) == (20, 4, 8)
    assert found["training_starts"] == [0, 10]


def test_only_the_steps_of_an_optimizer_count_if_there_is_one(tmp_path: Path) -> None:
    assert seen(tmp_path, "by_hand", "climbs")["steps"] == 20


def test_heads_that_take_turns_on_one_body_are_one_training(tmp_path: Path) -> None:
    found = seen(tmp_path, "by_hand", "heads")
    assert (found["steps"], found["training_starts"]) == (40, [0])
    assert "learning" not in found["unknown"]
    assert found["losses"] == pytest.approx(found["printed"])


@pytest.mark.parametrize("how", ["gradients", "new tensors"])
def test_gradients_alone_are_no_steps(tmp_path: Path, how: str) -> None:
    pytest.importorskip("torch")
    run = observed(SCRIPTS / "by_hand.py", how, folder=tmp_path)
    assert (run.code, run.steps) == (0, 0)
