"""What a GPU computes in a few steps, by PyTorch's own profiler.

How long the host takes says little about a GPU: it only queues what the GPU computes later.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.profiler import ProfilerActivity

from ... import accelerator

BEGINS_AFTER = 10
"""Steps before the profiled ones, so that compiling and warming up are over."""
STEPS = 5
"""Number of steps in which only the device is profiled."""
_OURS = "trainmark|"
"""Prefix of our ranges."""
_OPTIMIZER = "Optimizer.step#"
"""Prefix of PyTorch's ranges of optimiser steps."""
_MOST = 10
"""Most parts in a report."""


class Profile:
    """Profiles some steps.

    Args:
        activities: what is profiled.
        on_events: called once with the profiler's events.
        after: number of steps before the profiled ones.
        steps: number of profiled steps.
    """

    def __init__(
        self,
        activities: Sequence[Any],
        on_events: Callable[[list[Any]], object],
        after: int = BEGINS_AFTER,
        steps: int = STEPS,
    ) -> None:
        self._on_events = on_events
        self._after = after
        self._steps = 0
        self._profiled = steps
        self.is_over = False
        self._profiler: Any = torch.profiler.profile(activities=list(activities))

    def stepped(self) -> None:
        """Count a step."""
        if self.is_over:
            return
        self._steps += 1
        if self._steps == self._after:
            self.begin()
        elif self._steps == self.last_step:
            accelerator.synchronize(torch)
            self.is_over = True
            self.end()

    @property
    def last_step(self) -> int:
        """The step after which it ends."""
        return self._after + self._profiled

    def begin(self) -> None:
        """Begin to profile."""
        self._profiler.start()

    def end(self) -> None:
        """End it, and tell what was seen."""
        self._profiler.stop()
        self._on_events(list(self._profiler.events()))


class Busy(Profile):
    """How much of the time the device computes.

    Args:
        device: kind of the device, as the profiler's events have it.
        on_covered: called once with the share.
    """

    def __init__(self, device: Any, on_covered: Callable[[float], object]) -> None:
        super().__init__([getattr(ProfilerActivity, device.name)], self._seen)
        self._device = device
        self._on_covered = on_covered

    def _seen(self, events: list[Any]) -> None:
        spans = [each.time_range for each in events if each.device_type == self._device]
        if spans:
            self._on_covered(covered((each.start, each.end) for each in spans))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the share of the time that any of the spans covers.

    The time is from the first start to the last end.
    """
    ordered = sorted(spans)
    first = ordered[0][0]
    reached = ordered[0][0]
    total = 0.0
    for start, end in ordered:
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total / (reached - first) if reached > first else 0.0


class ByModule(Profile):
    """In which modules, called at which lines, the device computes in a step.

    The profiler nests operators in our ranges, and links each backward operator to its forward one.

    Args:
        observer: knows which code is the user's.
        device: kind of the device.
        on_shares: called once with the largest shares of the device's time, by the name of a module
            or an optimiser, and the user's line.
        time_of: how long the device computes what an operator has queued.
    """

    def __init__(
        self,
        observer: Any,
        device: Any,
        on_shares: Callable[[list[tuple[str, str, float]]], object],
        time_of: Callable[[Any], float],
    ) -> None:
        activities = {ProfilerActivity.CPU, getattr(ProfilerActivity, device.name)}
        super().__init__(tuple(activities), self._seen, BEGINS_AFTER + STEPS + 1, steps=1)
        self._observer = observer
        self._on_shares = on_shares
        self._time_of = time_of
        self._of_thread = threading.local()  # several may compute at the same time
        self._hooks: list[Any] = []

    def begin(self) -> None:
        """Begin, with a range around each call of a module."""
        if "torch._dynamo" in sys.modules and _is_compiled():
            self.is_over = True  # with other hooks, it would be compiled again
            return
        before = modules.register_module_forward_pre_hook(self._enter)
        after = modules.register_module_forward_hook(self._leave)
        self._hooks = [before, after]
        super().begin()

    def end(self) -> None:
        """End it."""
        for each in self._hooks:
            each.remove()
        super().end()

    def _enter(self, module: Any, _: Any) -> None:
        place = self._observer.users_place(sys._getframe(1)) or ""
        name = f"{_OURS}{type(module).__name__}|{place}"
        entered = torch.profiler.record_function(name)
        entered.__enter__()
        self._ranges.append((module, entered))

    def _leave(self, module: Any, *_: Any) -> None:
        while self._ranges:  # a call that has raised an error never leaves
            of, entered = self._ranges.pop()
            entered.__exit__(None, None, None)
            if of is module:
                return

    @property
    def _ranges(self) -> list[tuple[Any, Any]]:
        """The calls of modules that this thread is in, the innermost last."""
        if not hasattr(self._of_thread, "ranges"):
            self._of_thread.ranges = []
        ranges: list[tuple[Any, Any]] = self._of_thread.ranges
        return ranges

    def _seen(self, events: list[Any]) -> None:
        shares = by_range(events, self._time_of)
        if shares:
            self._on_shares(shares)


def _is_compiled() -> bool:
    from torch._dynamo.utils import counters

    return bool(counters["stats"].get("unique_graphs"))


def device_time(event: Any) -> float:
    """Return the time of the kernels that an operator has queued, in microseconds."""
    return sum(float(each.duration) for each in event.kernels)


def by_range(
    events: Iterable[Any], time_of: Callable[[Any], float]
) -> list[tuple[str, str, float]]:
    """Return the largest shares of the time by range: its name, its line and the share."""
    every = list(events)
    of_forward: dict[int, str] = {}
    names: dict[int, str | None] = {}
    for event in every:
        name = _range_of(event)
        names[id(event)] = name
        if name is not None and event.sequence_nr >= 0 and not _is_backward(event):
            of_forward[event.sequence_nr] = name
    seconds: defaultdict[str, float] = defaultdict(float)
    total = 0.0
    for event in every:
        spent = time_of(event)
        total += spent
        found = names[id(event)] or _forward_of(event, of_forward)
        if spent and found is not None:
            seconds[found] += spent
    largest = sorted(seconds, key=lambda name: -seconds[name])[:_MOST]
    return [(*_parts(name), seconds[name] / total) for name in largest]


def _range_of(event: Any) -> str | None:
    """Return the innermost range that an operator is in."""
    while event is not None:
        if event.name.startswith((_OURS, _OPTIMIZER)):
            return str(event.name)
        event = event.cpu_parent
    return None


def _is_backward(event: Any) -> bool:
    return bool(event.scope == 1 or event.name.startswith("autograd::"))


def _forward_of(event: Any, of_forward: dict[int, str]) -> str | None:
    """Return the range of the forward operator that a backward one belongs to."""
    while event is not None:
        if _is_backward(event) and event.sequence_nr in of_forward:
            return of_forward[event.sequence_nr]
        event = event.cpu_parent
    return None


def _parts(name: str) -> tuple[str, str]:
    """Return the name of the module or optimiser, and its line."""
    if name.startswith(_OPTIMIZER):
        return name[len(_OPTIMIZER) :], ""
    kind, _, place = name[len(_OURS) :].partition("|")
    return kind, place
