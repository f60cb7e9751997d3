"""Trainings in the style of public tutorials print the same, to the last bit, when observed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.observed import observed, plain
from tests.slow import slow

SCRIPTS = Path(__file__).parent / "scripts" / "trainings"


@pytest.mark.parametrize(
    ("name", "framework", "steps"),
    [
        ("loop", "torch", 24),
        ("closure", "torch", 6),
        slow("mixed", "torch", 12),
        slow("accumulation", "torch", 5),
        slow("adversarial", "torch", 10),
        slow("compiled", "torch", 6),
        ("scripted", "torch", 8),
        slow("workers", "torch", 12),
        slow("folds", "torch", 9),
        slow("functional", "torch", 7),
        ("keras_fit", "tensorflow", 16),
        slow("keras_step", "tensorflow", 12),
        slow("keras_torch", "keras", 8),
        slow("tensorflow_loop", "tensorflow", 8),
        ("jax_loop", "jax", 20),
        slow("jax_scan", "jax", 5),
    ],
)
def test_an_observed_training_prints_the_same(
    name: str, framework: str, steps: int, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    before = plain(SCRIPTS / f"{name}.py", folder=tmp_path)
    after = observed(SCRIPTS / f"{name}.py", folder=tmp_path)
    assert before.code == 0, before.err
    assert (after.code, after.out) == (before.code, before.out), after.err
    assert not [each for each in after.injected if each.startswith("not ")]
    assert after.steps == steps
