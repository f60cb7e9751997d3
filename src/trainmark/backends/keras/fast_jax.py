"""``fast`` on JAX: a loop within a compiled function of the state that Keras hands out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from trainmark.backends.base import Options
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import MOST_STEPS, FastTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

State = tuple[list[Any], list[Any], list[Any]]
"""Values of the trainable variables, of the others that a step changes, and of the optimiser's."""


class JaxTrainer(FastTrainer):
    """Steps in a ``jax.lax`` loop, or one by one where that is faster."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, engine: Engine) -> None:
        super().__init__(workload, model, data, options, engine)
        learner = self._learner
        self._state = learner.trainable_variables, learner.non_trainable_variables, self._optimizer.variables
        self._one_step = jax.jit(self._step_on, donate_argnums=0)
        self._many_steps = jax.jit(self._steps_on, donate_argnums=0)

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        state = jax.tree.map(lambda variable: variable.value, self._state)
        rows: Any = []
        if not self._slow_in_loops:
            state, rows = self._many_steps(state, x, y, batches, count)
        for step in range(count):
            if self._slow_in_loops:
                state, row = self._one_step(state, x, y, batches, step)
                rows.append(row)
            tick()
        jax.tree.map(lambda variable, value: variable.assign(value), self._state, state)
        return rows

    def _steps_on(self, state: State, x: Any, y: Any, batches: Any, count: Any) -> tuple[State, Any]:
        def one_step(step: Any, carried: tuple[State, Any]) -> tuple[State, Any]:
            state, row = self._step_on(carried[0], x, y, batches, step)
            return state, carried[1].at[step].set(row)

        return jax.lax.fori_loop(0, count, one_step, (state, jax.numpy.zeros((MOST_STEPS, 3), self._dtype)))

    def _step_on(self, state: State, x: Any, y: Any, batches: Any, step: Any) -> tuple[State, Any]:
        if batches is not None:
            x, y = x[batches[step]], y[batches[step]]
        trainable, others, optimizer = state
        gradient = jax.value_and_grad(self._loss_of, has_aux=True)
        (_, (row, others)), gradients = gradient(trainable, others, x, y)
        trainable, optimizer = self._optimizer.stateless_apply(optimizer, gradients, trainable)
        if not self._updates:
            trainable = [self._unsettled(trainable[0], step), *trainable[1:]]
        return (trainable, others, optimizer), row

    def _loss_of(self, trainable: list[Any], others: list[Any], x: Any, y: Any) -> tuple[Any, tuple[Any, list[Any]]]:
        outputs, others, l2_losses = self._learner.stateless_call(
            trainable, others, x, training=True, return_losses=True
        )
        total, row = self._judge(outputs, y, l2_losses)
        return total, (row, others)

    def _unsettled(self, kernel: Any, step: Any) -> Any:
        """The same, but XLA may not know it: of weights that never change it would compute much before the loop."""
        corner = (0,) * kernel.ndim
        return kernel.at[corner].set(jax.numpy.where(step < 0, 0, kernel[corner]))
