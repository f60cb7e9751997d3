"""Data parallelism over the devices of one process.

One program runs on all of them and averages their gradients.

It uses ``jax.sharding``: a mesh of devices, with batches split along it and weights replicated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from trainmark.backends.base import HITS, Job
from trainmark.backends.engines import jax as engines
from trainmark.backends.jax.fast import JaxFastTrainer
from trainmark.backends.jax.network import Parameters

AXIS = "data"
_EACH = PartitionSpec(AXIS)
"""Each device has its own part, along the first axis."""
_SAME = PartitionSpec()
"""All devices have the same values."""
_ORDER = PartitionSpec(None, AXIS)
"""Each device has its own part of every row, such as its examples of every step."""


class JaxDataParallelTrainer(JaxFastTrainer):
    """``fast`` on several devices."""

    def __init__(self, job: Job, mesh: Mesh) -> None:
        assert job.options.layout is not None
        self._mesh = mesh
        self._reduces = job.options.layout.reduces
        gathers = (
            not job.workload.takes_everything
            or job.workload.is_text
            or job.workload.augmented_input
        )
        self._cut = _SAME if gathers else _EACH
        super().__init__(
            job, mesh.devices[0], *(NamedSharding(mesh, cut) for cut in (_SAME, self._cut, _ORDER))
        )

    def _on_host(self, rows: Array) -> NDArray[np.float64]:
        """Return the results of whole batches."""
        of_devices = np.asarray(rows, np.float64).reshape(self._mesh.size, -1, 3)
        return np.concatenate(
            [of_devices.mean(axis=0)[:, :HITS], of_devices.sum(axis=0)[:, HITS:]], axis=1
        )

    def settings(self) -> dict[str, Any]:
        """Return JAX's settings and the number of devices."""
        return {**super().settings(), "mesh": self._mesh.size, "averages_gradients": self._reduces}

    def device_peak_bytes(self) -> int | None:
        """Return the peak memory of all devices together."""
        peaks = [engines.peak_bytes(device) for device in self._mesh.devices]
        known = [peak for peak in peaks if peak is not None]
        return sum(known) if len(known) == len(peaks) else None

    def _shared(self, found: tuple[Parameters, Parameters]) -> tuple[Parameters, Parameters]:
        return lax.pmean(found, AXIS) if self._reduces else found

    def _spread(self, looped: Callable[..., Any]) -> Callable[..., Any]:
        return over(
            self._mesh, looped, (_SAME, self._cut, self._cut, _ORDER, _SAME, _SAME), (_SAME, _EACH)
        )


def over(mesh: Mesh, function: Callable[..., Any], taken: Any, given: Any) -> Callable[..., Any]:
    """Run ``function`` on every device of ``mesh`` with its shard."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=taken, out_specs=given, check_vma=False)
    from jax.experimental.shard_map import shard_map

    return shard_map(function, mesh=mesh, in_specs=taken, out_specs=given, check_rep=False)
