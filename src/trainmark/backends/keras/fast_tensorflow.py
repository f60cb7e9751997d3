"""``fast`` on TensorFlow: a loop within a compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Options
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import FastTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload


class TensorFlowTrainer(FastTrainer):
    """Steps in a ``tf.while_loop``."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, engine: Engine) -> None:
        super().__init__(workload, model, data, options, engine)
        self._loops: dict[tuple[int, bool], Any] = {}
        self._xla = not self._slow_in_loops

    def _run(self, size: int, step: int, count: int, example: int, rows: Any, tick: Callable[[], None]) -> Any:
        key = size, self._plan.whole
        if key not in self._loops:
            self._loops[key] = tf.function(self._loop(*key), autograph=False, jit_compile=self._xla)
        place = (tf.constant(number) for number in (step, step + count, example))
        rows = self._loops[key](self._order, rows, *place)
        for _ in range(count):
            tick()
        return rows

    def settings(self) -> dict[str, Any]:
        """TensorFlow's switches, and whether the loop is compiled by XLA or run by TensorFlow itself."""
        return {**super().settings(), "jit_compile": self._xla}

    def _loop(self, size: int, whole: bool) -> Callable[..., Any]:
        def loop(order: Any, rows: Any, step: Any, end: Any, example: Any) -> Any:
            def body(step: Any, example: Any, rows: Any) -> Any:
                x, y = self._images, self._train_labels
                if self._held:
                    x, y = x[:size], y[:size]
                elif not whole:
                    indices = tf.slice(order, [example], [size])
                    x, y = tf.gather(x, indices), tf.gather(y, indices)
                row = self._learn(x, y)
                if not self._updates:
                    self._unsettle(self._network.trainable_variables[0].value, step)
                return step + 1, example + size, tf.tensor_scatter_nd_update(rows, [[step]], [row])

            return tf.while_loop(lambda step, *_: step < end, body, (step, example, rows))[2]

        return loop

    def _unsettle(self, kernel: Any, step: Any) -> None:
        """Write what is there: of weights that never change XLA would compute much before the loop."""
        now = tf.convert_to_tensor(kernel)
        corner = [[0] * len(now.shape)]
        same = tf.where(step < 0, tf.zeros([], now.dtype), tf.gather_nd(now, corner)[0])
        kernel.assign(tf.tensor_scatter_nd_update(now, corner, [same]))

    def _learn(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss, row = self._batch_loss(x, y)
        variables = self._network.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        self._optimizer.apply(gradients, variables)
        return row
