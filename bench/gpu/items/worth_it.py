"""Item 1: is the GPU worth it?"""

from __future__ import annotations

from collections.abc import Mapping

from gpu.items.comparison import DeviceComparison, device_table
from gpu.store import Result

WORKLOADS = ("mnist-mlp512", "mnist-cnn", "cifar10-cnn", "mnist-mlp128", "mnist-mlp32")
"""The published workloads, the README's first one and the largest networks first."""
SECONDS = 100.0
"""Time limit of each workload's comparison; trainmark's budget is a share of it."""


class WorthIt:
    """The CPU against the GPU, with PyTorch."""

    name = "worth-it"
    number = "1"
    question = "Is the GPU worth it, on the five published workloads?"
    limit = 500.0
    how = (
        "runs `trainmark run` for each workload with PyTorch `fast` and `idiomatic`, on the CPU "
        "and on the GPU. "
        "A round has one process for each side; their slices alternate."
    )

    def measurements(self) -> list[DeviceComparison]:
        """List the workloads."""
        return [
            DeviceComparison(self.name, each, "torch", ("fast", "idiomatic"), SECONDS)
            for each in WORKLOADS
        ]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write one table of all sides."""
        return device_table(
            results[each.name] for each in self.measurements() if each.name in results
        )
