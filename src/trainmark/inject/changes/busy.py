"""How much of a few steps a GPU computes, by PyTorch's own profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import accelerator

_SKIPPED = 10
"""Steps before the profiled ones, so that compiling and warming up are over."""
_STEPS = 5
"""Number of profiled steps."""


class Busy:
    """Profiles some steps.

    Args:
        device: kind of the device, as the profiler's events have it.
        on_covered: called once with the share of the time in which the device computes.
    """

    def __init__(self, device: Any, on_covered: Callable[[float], None]) -> None:
        self._device = device
        self._on_covered = on_covered
        self._steps = 0
        self._profiler: Any = torch.profiler.profile(
            activities=[getattr(torch.profiler.ProfilerActivity, device.name)]
        )

    def stepped(self) -> None:
        """Count a step."""
        self._steps += 1
        if self._steps == _SKIPPED:
            self._profiler.start()
        elif self._steps == _SKIPPED + _STEPS:
            accelerator.synchronize(torch)
            self._profiler.stop()
            events = [
                each.time_range
                for each in self._profiler.events()
                if each.device_type == self._device
            ]
            if events:
                self._on_covered(covered((each.start, each.end) for each in events))


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
