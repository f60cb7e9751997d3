"""Variables of the user's code that get larger from step to step: graphs, tensors and lists."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch

from ...places import place_of

_MOST_NODES = 20_000
"""Most nodes of a graph that are counted."""
_MOST_VARIABLES = 200
"""Most variables of a function that are looked at."""
_CONTAINERS = (list, dict, set)
_FEWEST_LOOKS = 4
_SAME_GAIN = 0.2
"""Largest difference between two gains a step, as a share of the larger one, of what grows with
every step; a sequence that is longer by chance has another one from look to look."""
_LOOKS_AROUND = {"locals"}
"""Names in functions whose variables are not looked at: to read them changes what the script gets.
"""
_LEAST_GAIN = 0.5
"""Least gain in each step from which on a variable gets longer with every step."""


class _Variable(NamedTuple):
    """A variable.

    Args:
        function: the first line of its function, as ``file:line``.
        name: its name, such as ``self.losses``.
    """

    function: str
    name: str


class Growing:
    """Looks at the variables after some steps, further and further apart.

    Args:
        is_users: tells whether a frame runs the user's code.
    """

    def __init__(self, is_users: Callable[[FrameType], bool]) -> None:
        self._is_users = is_users
        self._steps = 0
        self._next = 4
        self._sizes: dict[tuple[_Variable, str], list[tuple[int, int]]] = {}

    def stepped(self, frame: FrameType | None) -> bool:
        """Look at the variables of a thread after a step; returns whether it was time for that.

        Args:
            frame: its innermost frame.
        """
        self._steps += 1
        if self._steps < self._next:
            return False
        self._next *= 2
        try:
            while frame is not None:
                if self._is_users(frame) and _LOOKS_AROUND.isdisjoint(frame.f_code.co_names):
                    self._look(frame)
                frame = frame.f_back
        except Exception:  # noqa: BLE001  (what the variables hold is the user's)
            self._sizes.clear()
            self._next = sys.maxsize
        return True

    def _look(self, frame: FrameType) -> None:
        code = frame.f_code
        function = place_of(code.co_filename, code.co_firstlineno)
        for name, value in itertools.islice(_variables(frame), _MOST_VARIABLES):
            for kind, size in _sizes(value):
                looks = self._sizes.setdefault((_Variable(function, name), kind), [])
                looks.append((self._steps, size))
        if code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
            frame.f_locals.clear()  # a copy, which would keep the tensors of this step

    def facts(self) -> list[dict[str, Any]]:
        """Return the variables that got larger at every look.

        Each has its ``function``, ``name`` and ``kind`` (graph, list of graphs, list or tensor),
        and what it gains in each step.
        """
        found: list[dict[str, Any]] = []
        for (variable, kind), looks in self._sizes.items():
            if len(looks) < _FEWEST_LOOKS or looks[-1][0] * 2 < self._next:
                continue
            gains = [
                (size - before) / (step - earlier)
                for (earlier, before), (step, size) in zip(looks, looks[1:])  # noqa: B905, RUF007
            ]
            if min(gains) >= max(_LEAST_GAIN, (1 - _SAME_GAIN) * max(gains)):
                found.append({**variable._asdict(), "kind": kind, "gain": gains[-1]})
        return found


def _variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a function or a module, and the attributes of its ``self``."""
    for name, value in list(frame.f_locals.items()):
        if name == "self":
            attributes = getattr(value, "__dict__", None) or {}
            for attribute, inner in list(attributes.items()):
                yield f"self.{attribute}", inner
        elif not name.startswith("__"):
            yield name, value


def _sizes(value: Any) -> Iterator[tuple[str, int]]:
    """Yield the kinds of what a variable holds, each with its size."""
    if isinstance(value, torch.Tensor):
        if value.grad_fn is not None:
            yield "graph", _nodes(value)
        elif value.ndim:
            yield "tensor", value.shape[0]
    elif type(value) in _CONTAINERS and len(value) > 1:
        last = value[-1] if type(value) is list else None
        has_graph = isinstance(last, torch.Tensor) and last.grad_fn is not None
        yield ("list of graphs" if has_graph else "list"), len(value)


def _nodes(value: Any) -> int:
    """Return the number of operators that a tensor was computed by, as far as they are kept."""
    seen = {value.grad_fn}
    waiting = [value.grad_fn]
    while waiting and len(seen) < _MOST_NODES:
        for inner, _ in waiting.pop().next_functions:
            if inner is not None and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return len(seen)
