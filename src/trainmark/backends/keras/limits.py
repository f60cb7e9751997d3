"""Matrix products and copies of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Options
from trainmark.backends.limits import Work


class TensorFlowLimits:
    """One device in one precision; the engine has been prepared for both."""

    def __init__(self, options: Options) -> None:
        self._device = "CPU:0" if options.device == "cpu" else "GPU:0"
        self._dtype = tf.float64 if options.precision == "fp64" else tf.float32

    def product(self, size: int) -> Work:
        """A product in a compiled function."""
        with tf.device(self._device):
            left, right = (tf.random.uniform((size, size), dtype=self._dtype) for _ in range(2))
        return self._work(tf.function(tf.matmul), left, right)

    def copy(self, size: int) -> Work:
        """Every value by -1: read once and written once; ``tf.identity`` copies nothing."""
        with tf.device(self._device):
            source = tf.ones(size // 4)
        return self._work(tf.function(tf.negative), source)

    def _work(self, function: Callable[..., Any], *arguments: Any) -> Work:
        last: list[Any] = []

        def queue() -> None:
            with tf.device(self._device):
                last[:] = [function(*arguments)]

        return Work(queue, tf.test.experimental.sync_devices)
