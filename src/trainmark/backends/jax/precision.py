"""The arithmetic that JAX may use."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from trainmark.workload.precision import Precision


class JaxArithmetic(NamedTuple):
    """How JAX computes in one precision.

    Args:
        devices: kinds of device that support it: ``cpu``, ``gpu``.
        parameters: type of weights and inputs.
        factors: type of the factors and results of products; other sums stay in ``parameters``.
        matmul: JAX's default precision of products.
    """

    devices: tuple[str, ...]
    parameters: Any = jnp.float32
    factors: Any = jnp.float32
    matmul: str = "highest"


ARITHMETIC: dict[Precision, JaxArithmetic] = {
    "fp32": JaxArithmetic(("cpu", "gpu")),
    "tf32": JaxArithmetic(("gpu",), matmul="tensorfloat32"),
    "bf16": JaxArithmetic(("cpu", "gpu"), factors=jnp.bfloat16, matmul="default"),
    "fp64": JaxArithmetic(("cpu", "gpu"), jnp.float64, jnp.float64),
}


def supported(device: str) -> tuple[Precision, ...]:
    """Return the precisions of a kind of device."""
    return tuple(name for name, arithmetic in ARITHMETIC.items() if device in arithmetic.devices)


def set_arithmetic(precision: Precision) -> None:
    """Set the precision.

    ``fp32`` is IEEE single precision: no product is rounded unless requested by name.
    """
    jax.config.update("jax_default_matmul_precision", ARITHMETIC[precision].matmul)
    if ARITHMETIC[precision].parameters == jnp.float64:
        jax.config.update("jax_enable_x64", True)  # else JAX converts every float64 to float32
