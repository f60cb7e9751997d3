"""JAX's devices and settings, for JAX and for Keras on JAX."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import jaxlib
from jax import Array

from trainmark.backends.base import Device, Options, cpu
from trainmark.workload.precision import Precision

OLDEST = "0.5"
"""Oldest tested JAX."""
NEWEST = "0.10"
"""Newest tested JAX."""


def packages() -> dict[str, str]:
    """Return the versions of JAX and its compiler."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__}


def devices(on_cpu: tuple[Precision, ...], on_gpu: tuple[Precision, ...]) -> dict[Device, Any]:
    """Return the CPU and any GPUs, each with JAX's object for it.

    Args:
        on_cpu: precisions of the CPU.
        on_gpu: precisions of a GPU.
    """
    found = {cpu(*on_cpu): jax.local_devices(backend="cpu")[0]}
    if jax.default_backend() == "gpu":
        for index, device in enumerate(jax.devices()):
            memory = (device.memory_stats() or {}).get("bytes_limit")
            found[Device(f"cuda:{index}", device.device_kind, "accelerator", memory, on_gpu)] = (
                device
            )
    return found


def take_share(options: Options) -> None:
    """Limit the share of the device's memory.

    JAX takes it when it first sees the device, so its backends are cleared. This happens only once,
    since that also clears what other trainers of this process hold.
    """
    share = None if options.memory_fraction is None else str(options.memory_fraction)
    if share is not None and os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION") != share:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = share
        jax.extend.backend.clear_backends()


def unsettled(kernel: Array, step: Any) -> Array:
    """Return the same kernel, but opaque to XLA.

    Otherwise XLA would hoist computations on constant weights out of a loop.
    """
    corner = (0,) * kernel.ndim
    return kernel.at[corner].set(jnp.where(step < 0, 0, kernel[corner]))


def settings() -> dict[str, Any]:
    """Return the settings as JAX reports them now."""
    return {
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "enable_x64": jax.config.jax_enable_x64,
        "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        "threads": os.environ.get("NPROC"),
    }


def peak_bytes(device: Any) -> int | None:
    """Return XLA's peak memory on the device; None on a CPU."""
    return (device.memory_stats() or {}).get("peak_bytes_in_use")
