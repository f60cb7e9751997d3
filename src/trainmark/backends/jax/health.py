"""Whether JAX can use this machine's devices."""

from __future__ import annotations

import os
import re
from importlib.metadata import distributions
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination, first_line

_PLUGIN = re.compile(r"jax[-_](cuda|rocm)(\d+)[-_]plugin", re.IGNORECASE)
_NAMES = {"cuda": "CUDA", "rocm": "ROCm"}
_GPU_PLATFORMS = ("", "gpu", "cuda", "rocm")


def examine() -> Examination:
    """Which plug-in JAX has for GPUs, and why it sees none."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read when the first device is looked at
    platforms = os.environ.get("JAX_PLATFORMS", "")
    hidden = not any(each.strip() in _GPU_PLATFORMS for each in platforms.split(","))
    blind = None
    if built_for() and not hidden:
        try:
            jax.devices("gpu")
        except RuntimeError as error:
            blind = first_line(error)
    return Examination(built_for(), None, blind, f"JAX_PLATFORMS={platforms}" if hidden else None)


def built_for() -> str | None:
    """The accelerator of the installed plug-in; None if there is none."""
    for distribution in distributions():
        plugin = _PLUGIN.fullmatch(distribution.metadata["Name"] or "")
        if plugin:
            return f"{_NAMES[plugin[1].lower()]} {plugin[2]}"
    return None


def multiply(device: str) -> tuple[NDArray[Any], str]:
    """``LEFT @ RIGHT`` on ``device``, and where it lay."""
    kind, _, index = device.partition(":")
    place = jax.devices("gpu" if kind == "cuda" else kind)[int(index or 0)]
    left, right = (jax.device_put(np.array(factor, np.float32), place) for factor in (LEFT, RIGHT))
    product = jax.jit(jax.numpy.matmul)(left, right)
    return np.asarray(product), str(next(iter(product.devices())))
