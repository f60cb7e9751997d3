"""``fast`` on TensorFlow: a loop within a compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Options
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import MOST_STEPS, FastTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload


class TensorFlowTrainer(FastTrainer):
    """Steps in a ``tf.while_loop``."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, engine: Engine) -> None:
        super().__init__(workload, model, data, options, engine)
        self._xla = not self._slow_in_loops
        self._loop = tf.function(self._steps_on, autograph=False, jit_compile=self._xla)

    def settings(self) -> dict[str, Any]:
        """TensorFlow's switches, and whether the loop is compiled by XLA or run by TensorFlow itself."""
        return {**super().settings(), "jit_compile": self._xla}

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        rows = self._loop(x, y, batches, tf.constant(count))
        for _ in range(count):
            tick()
        return rows

    def _steps_on(self, x: Any, y: Any, batches: Any, count: Any) -> Any:
        def one_step(step: Any, rows: Any) -> tuple[Any, Any]:
            batch = (x, y) if batches is None else (tf.gather(x, batches[step]), tf.gather(y, batches[step]))
            row = self._learn(*batch)
            if not self._updates:
                self._unsettle(self._network.trainable_variables[0].value, step)
            return step + 1, tf.tensor_scatter_nd_update(rows, [[step]], [row])

        rows = tf.zeros((MOST_STEPS, 3), self._dtype)
        return tf.while_loop(lambda step, _: step < count, one_step, (0, rows))[1]

    def _learn(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            total, row = self._judge(self._learner(x, training=True), y, self._learner.losses)
        variables = self._network.trainable_variables
        gradients = tape.gradient(total, [variable.value for variable in variables])
        self._optimizer.apply(gradients, variables)
        return row

    def _unsettle(self, kernel: Any, step: Any) -> None:
        """Write what is there: of weights that never change XLA would compute much before the loop."""
        now = tf.convert_to_tensor(kernel)
        corner = [[0] * len(now.shape)]
        same = tf.where(step < 0, tf.zeros([], now.dtype), tf.gather_nd(now, corner)[0])
        kernel.assign(tf.tensor_scatter_nd_update(now, corner, [same]))
