"""Item 6: JAX and Keras on the workloads of item 1."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.items.comparison import DeviceComparison, device_table
from gpu.items.worth_it import WORKLOADS
from gpu.store import Result

BACKENDS = ("jax", "keras")
SECONDS = 60.0
"""Time limit of each workload and framework, in seconds: enough for a verdict with one style."""


class Frameworks:
    """The CPU against the GPU, with JAX and Keras."""

    name = "frameworks"
    number = "6"
    question = "Is the GPU worth it with JAX and Keras?"
    limit = 450.0
    how = (
        "measures what item 1 measures, with the style `fast` of JAX and of Keras (on TensorFlow)."
    )

    def measurements(self) -> list[DeviceComparison]:
        """List each workload with each framework."""
        return [
            DeviceComparison(self.name, workload, backend, ("fast",), SECONDS)
            for workload in WORKLOADS
            for backend in BACKENDS
        ]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write one table of all sides."""
        return device_table(
            results[each.name] for each in self.measurements() if each.name in results
        )
