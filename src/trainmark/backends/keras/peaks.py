"""Matrix products, convolutions and copies of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Options
from trainmark.backends.keras.precision import ARITHMETIC
from trainmark.backends.peaks import QueuedWork
from trainmark.workload.products import Convolution, Product


class TensorFlowPeakKernels:
    """One device in one precision; the engine must be prepared for both."""

    def __init__(self, options: Options) -> None:
        self._device = "CPU:0" if options.device == "cpu" else "GPU:0"
        self._dtype = tf.as_dtype(ARITHMETIC[options.precision].floatx)

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return the products as one compiled function."""
        return self._work(tf.function(partial(_in_a_row, asked)), self._random(asked))

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Return the convolutions as one compiled function."""
        return self._work(tf.function(partial(_layers_in_a_row, asked)), self._random(asked))

    def _random(self, asked: Sequence[Product | Convolution]) -> list[tuple[Any, ...]]:
        """Draw the operands of each."""
        with tf.device(self._device):
            return [
                tuple(tf.random.uniform(shape, dtype=self._dtype) for shape in each.operands)
                for each in asked
            ]

    def copy(self, size: int) -> QueuedWork:
        """Multiply every value by -1: one read and one write; ``tf.identity`` copies nothing."""
        with tf.device(self._device):
            source = tf.ones(size // 4)
        return self._work(tf.function(tf.negative), source)

    def _work(self, function: Callable[..., Any], *arguments: Any) -> QueuedWork:
        last: list[Any] = []

        def queue() -> None:
            with tf.device(self._device):
                last[:] = [function(*arguments)]

        return QueuedWork(queue, tf.test.experimental.sync_devices)


def _after(found: list[Any], compute: Callable[..., Any], *operands: Any, **options: Any) -> None:
    """Append the result of ``compute``, after the previous one as in a step.

    Otherwise several may run at once.
    """
    with tf.control_dependencies(found[-1:]):
        found.append(compute(*operands, **options))


def _in_a_row(asked: Sequence[Product], operands: Sequence[tuple[Any, Any]]) -> list[Any]:
    found: list[Any] = []
    for product, (left, right) in zip(asked, operands, strict=True):
        _after(found, tf.matmul, left, right, transpose_a=product.turned)
    return found


def _layers_in_a_row(
    asked: Sequence[Convolution], operands: Sequence[tuple[Any, Any, Any]]
) -> list[Any]:
    found: list[Any] = []
    for each, (x, kernel, gradient) in zip(asked, operands, strict=True):
        how: dict[str, Any] = {"strides": (1, each.stride, each.stride, 1), "padding": "VALID"}
        if each.padding and each.stride == 1:
            how["padding"] = "SAME"
        elif each.padding:
            side = (each.padding, each.padding)
            how |= {"padding": "EXPLICIT", "explicit_paddings": (0, 0, *side, *side, 0, 0)}
        _after(found, tf.raw_ops.Conv2D, input=x, filter=kernel, **how)
        how["out_backprop"] = gradient
        _after(
            found, tf.raw_ops.Conv2DBackpropFilter, input=x, filter_sizes=each.kernel_shape, **how
        )
        if each.by_input:
            _after(
                found,
                tf.raw_ops.Conv2DBackpropInput,
                input_sizes=each.input_shape,
                filter=kernel,
                **how,
            )
    return found
