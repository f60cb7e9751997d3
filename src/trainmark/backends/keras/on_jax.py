"""JAX as the engine of Keras."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend
import jaxlib

from trainmark.backends.base import Device, Options

_MATMUL = {"fp64": "highest", "fp32": "highest", "tf32": "tensorfloat32"}


class JaxEngine:
    """JAX on CPU and CUDA."""

    title, version, oldest, newest = "JAX", jax.__version__, "0.5", "0.10"

    def packages(self) -> dict[str, str]:
        """JAX and its compiler."""
        return {"jax": self.version, "jaxlib": jaxlib.__version__}

    def devices(self) -> tuple[Device, ...]:
        """CPU, and GPUs where JAX has found some."""
        return tuple(_devices())

    def prepare(self, options: Options) -> None:
        """Threads can only be chosen by the environment, before JAX is imported."""
        if options.memory_fraction is not None:
            # JAX takes its share when it first sees the device, so it has to forget that it has seen it.
            os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(options.memory_fraction)
            jax.extend.backend.clear_backends()
        jax.config.update("jax_default_matmul_precision", _MATMUL[options.precision])
        jax.config.update("jax_enable_x64", options.precision == "fp64")
        self._device = next(found for device, found in _devices().items() if device.id == options.device)
        jax.config.update("jax_default_device", self._device)

    def reseed(self, seed: int) -> None:
        """JAX has none of its own: Keras shuffles with NumPy's."""

    @property
    def fast_trainer(self) -> Any:
        """A loop within a compiled function."""
        from trainmark.backends.keras.fast_jax import JaxTrainer

        return JaxTrainer

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """Arrays as a generator that has nothing to make."""
        return ((x, y) for _ in range(steps))

    def synchronize(self, values: Sequence[Any]) -> None:
        """Wait for the state."""
        jax.block_until_ready(values)

    def settings(self) -> dict[str, Any]:
        """JAX's switches as it reports them now."""
        return {
            "matmul_precision": jax.config.jax_default_matmul_precision,
            "enable_x64": jax.config.jax_enable_x64,
            "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
            "threads": os.environ.get("NPROC"),
        }

    def device_peak_bytes(self) -> int | None:
        """Most memory JAX held on the device, where it says so."""
        peak: int | None = (self._device.memory_stats() or {}).get("peak_bytes_in_use")
        return peak


def _devices() -> dict[Device, Any]:
    """Each device, and JAX's own object for it."""
    cpu = Device("cpu", platform.processor() or platform.machine(), "cpu", None, ("fp32", "fp64"))
    found = {cpu: jax.local_devices(backend="cpu")[0]}
    if jax.default_backend() == "gpu":
        for index, device in enumerate(jax.devices()):
            memory = (device.memory_stats() or {}).get("bytes_limit")
            name = Device(f"cuda:{index}", device.device_kind, "accelerator", memory, ("fp32", "tf32", "fp64"))
            found[name] = device
    return found


ENGINE = JaxEngine()
