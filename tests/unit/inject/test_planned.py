"""The length of a training is known from the framework that trains."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.inject.planned import steps_left

TRAINER = """
def train(self, look):
    batch = [1, 2, 3]
    found = look()
    return found, batch
"""


def looked(state: Any, name: str = "/packages/transformers/trainer.py") -> int | None:
    """Return what is seen from below a function of a file, whose ``self`` has a state."""
    names: dict[str, Any] = {}
    exec(compile(TRAINER, name, "exec"), names)

    def look() -> int | None:
        return steps_left(sys._getframe())

    found, batch = names["train"](SimpleNamespace(state=state), look)
    assert batch == [1, 2, 3], "its variables stay as they are"
    known: int | None = found
    return known


def trained(most: Any, done: Any = 0) -> SimpleNamespace:
    return SimpleNamespace(max_steps=most, global_step=done)


def test_the_trainer_knows_its_steps() -> None:
    assert looked(trained(500)) == 500
    assert looked(trained(500, 400)) == 100, "it was resumed"


@pytest.mark.parametrize(
    "state", [None, SimpleNamespace(), trained(0), trained("a"), trained(5, 5), trained(5, None)]
)
def test_what_it_does_not_know_is_unknown(state: Any) -> None:
    assert looked(state) is None


def test_no_other_file_is_asked() -> None:
    assert looked(trained(500), "/home/me/trainer.py") is None
