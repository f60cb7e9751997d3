"""How Keras computes in each precision, on each of its engines."""

from __future__ import annotations

from typing import NamedTuple

from trainmark.workload.precision import Precision


class KerasArithmetic(NamedTuple):
    """How Keras computes in one precision.

    Args:
        engines: engines that support it.
        floatx: type of weights, inputs and sums.
        tf32: whether float32 products may use TF32, which only GPUs have.
    """

    engines: tuple[str, ...] = ("TensorFlow", "PyTorch", "JAX")
    floatx: str = "float32"
    tf32: bool = False


ARITHMETIC: dict[Precision, KerasArithmetic] = {
    "fp32": KerasArithmetic(),
    "tf32": KerasArithmetic(tf32=True),
    # On PyTorch, Keras converts float64 to float32 in every matrix product.
    "fp64": KerasArithmetic(("TensorFlow", "JAX"), floatx="float64"),
}


def supported(engine: str, *, gpu: bool) -> tuple[Precision, ...]:
    """Return the precisions of an engine on a CPU or a GPU."""
    return tuple(
        name
        for name, each in ARITHMETIC.items()
        if engine in each.engines and (gpu or not each.tf32)
    )
