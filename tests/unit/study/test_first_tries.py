"""Which changes are tried within one process, and which of them get a separate process."""

from __future__ import annotations

from typing import Any

import pytest

from trainmark.analysis.experiments import EXPERIMENTS, NO_GAIN, SWITCHABLE
from trainmark.record.observed import Observed
from trainmark.study.explain.first_tries import seconds_of, switchable, worth_a_process

PLANNED = ("no-gc", "workers=2", "threads=1", "same-batch", "bf16", "compile")


def of_script(framework: str = "torch", ranks: int = 1, **facts: Any) -> tuple[str, ...]:
    seen = Observed(framework, (), steps=10, seconds=1.0, ranks=ranks)
    return switchable(PLANNED, seen, facts)


def test_what_needs_a_new_process_is_not_tried() -> None:
    assert of_script(workers=0) == ("no-gc", "threads=1", "same-batch", "bf16")


@pytest.mark.parametrize("facts", [{}, {"workers": 2}])
def test_batches_are_only_frozen_where_the_training_loads_them(facts: Any) -> None:
    assert of_script(**facts) == ("no-gc", "threads=1", "bf16")


def test_only_a_single_process_of_pytorch_can_be_switched() -> None:
    assert of_script("keras", workers=0) == ()
    assert of_script("jax", workers=0) == ()
    assert of_script(ranks=2, workers=0) == ()


def test_two_changes_are_not_worth_another_process() -> None:
    seen = Observed("torch", (), steps=10, seconds=1.0)
    assert switchable(("no-gc", "bf16", "compile"), seen, {}) == ()


def test_the_order_follows_the_gains() -> None:
    """What can't be tried comes after clear gains, and before the rest."""
    ratios = {"no-gc": [1.0, 1.06], "threads=1": [1.2, 1.3], "bf16": [2.0, 1.5]}
    planned, left_out = worth_a_process(PLANNED, ratios)
    assert planned == ["bf16", "threads=1", "workers=2", "same-batch", "compile", "no-gc"]
    assert left_out == {}


def test_what_gains_nothing_twice_gets_no_process() -> None:
    planned, left_out = worth_a_process(PLANNED, {"no-gc": [0.98, 1.02], "bf16": [0.5]})
    assert planned == ["workers=2", "threads=1", "same-batch", "compile", "bf16"]
    assert left_out == {"no-gc": f"{NO_GAIN}: 0.98× and 1.02×"}


def test_short_steps_do_not_make_blocks_shorter() -> None:
    names = ("no-gc", "threads=1", "bf16")
    assert seconds_of(names, 0.0) == pytest.approx(7 * 0.25)
    assert seconds_of(names, 0.2) == pytest.approx(7 * 1.0)


def test_each_is_an_experiment() -> None:
    assert set(SWITCHABLE) < set(EXPERIMENTS)
