"""The length of a training is known from the framework that trains."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.inject.planned import planned_steps

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
        return planned_steps(sys._getframe())

    found, batch = names["train"](SimpleNamespace(state=state), look)
    assert batch == [1, 2, 3], "its variables stay as they are"
    known: int | None = found
    return known


def test_the_trainer_knows_its_steps() -> None:
    assert looked(SimpleNamespace(max_steps=500)) == 500


@pytest.mark.parametrize(
    "state", [None, SimpleNamespace(), SimpleNamespace(max_steps=0), SimpleNamespace(max_steps="a")]
)
def test_what_it_does_not_know_is_unknown(state: Any) -> None:
    assert looked(state) is None


def test_no_other_file_is_asked() -> None:
    assert looked(SimpleNamespace(max_steps=500), "/home/me/trainer.py") is None
