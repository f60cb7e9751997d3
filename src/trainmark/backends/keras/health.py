"""Whether TensorFlow can use this machine's devices."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination


def examine() -> Examination:
    """What TensorFlow was built for."""
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # others are being asked at the same time
    build = tf.sysconfig.get_build_info()
    built_for = f"CUDA {build['cuda_version']}" if build.get("is_cuda_build") else None
    architectures = tuple(build.get("cuda_compute_capabilities", ())) if built_for else None
    return Examination(built_for, architectures, None)


def multiply(device: str) -> tuple[NDArray[Any], str]:
    """``LEFT @ RIGHT`` on ``device``, and where it lay."""
    kind, _, index = device.partition(":")
    with tf.device(f"/{'GPU' if kind == 'cuda' else 'CPU'}:{index or 0}"):
        product = tf.constant(LEFT, tf.float32) @ tf.constant(RIGHT, tf.float32)
    return product.numpy(), str(product.device)
