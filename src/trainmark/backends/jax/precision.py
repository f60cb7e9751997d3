"""What arithmetic JAX is allowed to use."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp

from trainmark.backends.base import Precision

_MATMUL = {"fp64": "highest", "fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def set_arithmetic(precision: Precision) -> None:
    """``fp32`` is IEEE single precision: products are never rounded to fewer bits unless asked for by name."""
    jax.config.update("jax_default_matmul_precision", _MATMUL[precision])
    if precision == "fp64":
        jax.config.update("jax_enable_x64", True)  # without it JAX makes float32 of every float64


def parameter_dtype(precision: Precision) -> Any:
    """The type of weights and inputs."""
    return jnp.float64 if precision == "fp64" else jnp.float32


def product_dtype(precision: Precision) -> Any:
    """The type that the factors of products are rounded to; sums are kept in :func:`parameter_dtype`."""
    return jnp.bfloat16 if precision == "bf16" else parameter_dtype(precision)


def settings() -> dict[str, Any]:
    """The switches as JAX reports them now."""
    return {
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "enable_x64": jax.config.jax_enable_x64,
        "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        "threads": os.environ.get("NPROC"),
    }
