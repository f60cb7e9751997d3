"""Whether JAX can use this machine's devices."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination, try_products

_PLUGIN = re.compile(r"jax[-_](cuda|rocm)(\d+)[-_]plugin", re.IGNORECASE)


def examine(devices: tuple[str, ...]) -> Examination:
    """Which plug-in JAX has for GPUs, and a product on each of ``devices``."""
    built = built_for()
    blind = None
    if built and not any(device.platform == "gpu" for device in jax.devices()):
        try:
            jax.devices("gpu")
        except RuntimeError as error:
            blind = str(error).strip().splitlines()[0]
    return Examination(built, None, blind, try_products(devices, _multiply))


def built_for() -> str | None:
    """The accelerator of the plug-in that is installed; None where there is none."""
    for distribution in distributions():
        plugin = _PLUGIN.fullmatch(distribution.metadata["Name"] or "")
        if plugin:
            return f"{ {'cuda': 'CUDA', 'rocm': 'ROCm'}[plugin[1].lower()] } {plugin[2]}"
    return None


def _multiply(device: str) -> tuple[NDArray[Any], str]:
    kind, _, index = device.partition(":")
    place = jax.devices("gpu" if kind == "cuda" else kind)[int(index or 0)]
    left, right = (jax.device_put(np.array(factor, np.float32), place) for factor in (LEFT, RIGHT))
    product = jax.jit(jax.numpy.matmul)(left, right)
    return np.asarray(product), str(next(iter(product.devices())))
