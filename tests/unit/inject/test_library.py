"""Below a line of the user's, the function of a library is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from trainmark.inject.changes.library import function_of


def defined(source: str, file: str) -> dict[str, Any]:
    """Return what a module of a package defines."""
    names: dict[str, Any] = {"function_of": function_of, "sys": sys}
    exec(compile(source, f"/env/lib/site-packages/{file}", "exec"), names)
    return names


compute: Callable[[], str | None] = defined(
    "def compute():\n    return function_of(sys._getframe())\n", "torch/nn/functional.py"
)["compute"]
train: Callable[[Callable[[], str | None]], str | None] = defined(
    "def train(call):\n    return call()\n", "trainer/loop.py"
)["train"]


def test_a_library_that_calls_the_framework() -> None:
    assert train(compute) == "train, trainer/loop.py:1"


def test_the_framework_alone() -> None:
    assert compute() is None


def test_our_own_functions_around_the_framework_are_no_library() -> None:
    source = "def outer(call):\n    return call()\n"
    outer = defined(source, "trainmark/inject/changes/torch/outermost.py")["outer"]
    assert outer(compute) is None
    loop = defined("def train(outer, call):\n    return outer(call)\n", "trainer/loop.py")["train"]
    assert loop(outer, compute) == "train, trainer/loop.py:1"


def test_a_function_of_the_user_below_a_library() -> None:
    def step() -> str | None:
        return compute()

    assert train(step) is None
