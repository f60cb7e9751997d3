"""Odd trainings are seen rightly, or as unknown with a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.observed import Run, observed

SCRIPTS = Path(__file__).parent / "scripts" / "seen"


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    """PyTorch trains in all of them."""
    pytest.importorskip("torch")


def odd(folder: Path, kind: str, steps: int = 0) -> tuple[Run, dict[str, Any]]:
    """Run an odd training; returns what was observed last, with all losses."""
    run = observed(SCRIPTS / "odd.py", kind, folder=folder, steps=steps)
    assert run.code == 0, run.err
    losses = [loss for report in run.reports for loss in report["losses"]]
    return run, {**run.reports[-1], "losses": losses} if run.reports else {}


def test_a_script_without_a_step_reports_nothing(tmp_path: Path) -> None:
    run, _ = odd(tmp_path, "no steps")
    assert not run.reports


def test_one_step_has_no_duration_and_examples_that_are_unknown(tmp_path: Path) -> None:
    _, found = odd(tmp_path, "one step")
    assert (found["steps"], found["seconds"], found["examples_per_step"]) == (1, 0.0, None)
    assert "may not have been seen" in found["unknown"]["examples_per_step"]
    assert len(found["losses"]) == 1


def test_each_long_step_is_reported_when_it_has_ended(tmp_path: Path) -> None:
    run, found = odd(tmp_path, "long steps")
    assert [report["steps"] for report in run.reports] == [1, 2, 3, 3]
    assert found["examples_per_step"] == 96


@pytest.mark.parametrize(
    ("kind", "steps", "starts"),
    [("a loss that is a string", 10, 1), ("thousands of optimisers", 3000, 1)],
)
def test_odd_steps_are_counted(tmp_path: Path, kind: str, steps: int, starts: int) -> None:
    _, found = odd(tmp_path, kind)
    assert (found["steps"], len(found["training_starts"])) == (steps, starts)
    assert found["examples_per_step"] == 96
    assert all(isinstance(loss, float) for loss in found["losses"])
    assert found["losses"][-1] < found["losses"][0]


def test_a_loader_without_an_end_ends_with_its_steps(tmp_path: Path) -> None:
    _, found = odd(tmp_path, "a loader without an end", steps=50)
    assert (found["steps"], found["ended_early"]) == (50, True)
    assert (found["examples_per_step"], found["epochs"]) == (4, 0)


def test_examples_of_growing_batches_are_a_mean(tmp_path: Path) -> None:
    _, found = odd(tmp_path, "growing batches")
    assert found["steps"] == 12 + 6 + 3
    assert found["examples_per_step"] == pytest.approx(3 * 96 / 21)


@pytest.mark.parametrize(
    ("order", "steps", "starts"), [("in turn", 30, [0]), ("one after the other", 80, [0, 30])]
)
def test_two_frameworks_are_named(
    tmp_path: Path, order: str, steps: int, starts: list[int]
) -> None:
    pytest.importorskip("jax")
    run = observed(SCRIPTS / "two_frameworks.py", order, folder=tmp_path)
    assert run.code == 0, run.err
    found = run.reports[-1]
    assert (found["steps"], found["training_starts"]) == (steps, starts)
    assert found["unknown"]["learning"].startswith("torch and jax both train in this process")
    assert sum(len(report["losses"]) for report in run.reports) == steps


def test_a_single_step_of_another_framework_is_no_training(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    run = observed(SCRIPTS / "two_frameworks.py", "only tried", folder=tmp_path)
    assert run.code == 0, run.err
    assert "learning" not in run.reports[-1]["unknown"]


@pytest.mark.parametrize("kind", ["no steps", "one step"])
def test_the_answer_claims_nothing_of_what_was_not_seen(tmp_path: Path, kind: str) -> None:
    words = ["--repeats", "1", "--out", str(tmp_path / "results"), "--", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", "measure", *words, str(SCRIPTS / "odd.py"), kind],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        check=True,
    )
    assert "evaluation" not in done.stdout
    assert "Where the time goes" not in done.stdout
    assert ("neither steps nor epochs were seen" in done.stdout) == (kind == "no steps")
