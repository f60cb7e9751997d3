"""Which sides take part; ``tests/end_to_end/test_parity.py`` runs them."""

from __future__ import annotations

from pathlib import Path

from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, Interpreter
from trainmark.study import parity


def test_the_best_style_of_each_backend_on_each_device() -> None:
    other = Interpreter("old", Path("/opt/old/bin/python"))
    sides = [
        Side("torch", "idiomatic", "cpu", THIS),
        Side("torch", "fast", "cpu", THIS),
        Side("torch", "idiomatic", "cuda:0", THIS),
        Side("torch", "fast", "cuda:0", THIS),
        Side("torch", "fast", "cpu", other),
        Side("numpy", "idiomatic", "cpu", THIS),
    ]
    best = parity._in_best_style(sides)
    assert [side.title for side in best] == [
        "torch fast cpu", "torch fast cuda:0", "torch@old fast cpu", "numpy idiomatic cpu",
    ]  # fmt: skip
