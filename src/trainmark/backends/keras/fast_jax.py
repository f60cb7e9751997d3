"""``fast`` on JAX: a loop within a compiled function of the state that Keras lends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import keras

from trainmark.backends.base import Options
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import FastTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

State = tuple[list[Any], list[Any], list[Any]]
"""Values of the trainable variables, of the others that a step changes, and of the optimiser's."""


class JaxTrainer(FastTrainer):
    """Steps in a ``jax.lax`` loop, or one by one where they are faster so."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, engine: Engine) -> None:
        super().__init__(workload, model, data, options, engine)
        drawing = self._distort.variables if self._distort else []
        self._state = (
            self._network.trainable_variables,
            [*self._network.non_trainable_variables, *drawing],
            self._optimizer.variables,
        )
        static = ("size", "whole")
        self._one_step = jax.jit(self._step_on, static_argnames=static, donate_argnums=(0, 1))
        self._many_steps = jax.jit(self._steps_on, static_argnames=static, donate_argnums=(0, 1))

    def _run(self, size: int, step: int, count: int, example: int, rows: Any, tick: Callable[[], None]) -> Any:
        state = jax.tree.map(lambda variable: variable.value, self._state)
        arrays, chosen = (self._images, self._train_labels, self._order), {"size": size, "whole": self._plan.whole}
        if not self._slow_in_loops:
            state, rows = self._many_steps(state, rows, arrays, (step, step + count, example), **chosen)
        for number in range(count):
            if self._slow_in_loops:
                state, rows = self._one_step(state, rows, arrays, (step + number, example + number * size), **chosen)
            tick()
        jax.tree.map(lambda variable, value: variable.assign(value), self._state, state)
        return rows

    def _steps_on(
        self, state: State, rows: Any, arrays: Any, place: tuple[int, int, int], *, size: int, whole: bool
    ) -> tuple[State, Any]:
        first, end, example = place

        def one_step(step: Any, carried: tuple[State, Any]) -> tuple[State, Any]:
            return self._step_on(*carried, arrays, (step, example + (step - first) * size), size=size, whole=whole)

        return jax.lax.fori_loop(first, end, one_step, (state, rows))

    def _step_on(
        self, state: State, rows: Any, arrays: Any, place: tuple[Any, Any], *, size: int, whole: bool
    ) -> tuple[State, Any]:
        (x, y, order), (step, example) = arrays, place
        if self._held:
            x, y = x[:size], y[:size]
        elif not whole:
            indices = jax.lax.dynamic_slice_in_dim(order, example, size)
            x, y = x[indices], y[indices]
        state, row = self._learn(state, x, y)
        if not self._updates:
            state = ([self._unsettled(state[0][0], step), *state[0][1:]], *state[1:])
        return state, rows.at[step].set(row)

    def _unsettled(self, kernel: Any, step: Any) -> Any:
        """The same, but XLA may not know it: of weights that never change it would compute much before the loop."""
        corner = (0,) * kernel.ndim
        return kernel.at[corner].set(jax.numpy.where(step < 0, 0, kernel[corner]))

    def _learn(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        trainable, others, optimizer = state
        gradient = jax.value_and_grad(self._loss_of, has_aux=True)
        (_, (row, others)), gradients = gradient(trainable, others, x, y)
        trainable, optimizer = self._optimizer.stateless_apply(optimizer, gradients, trainable)
        return (trainable, others, optimizer), row

    def _loss_of(self, trainable: list[Any], others: list[Any], x: Any, y: Any) -> tuple[Any, tuple[Any, list[Any]]]:
        variables = [*self._state[0], *self._state[1]]
        with keras.StatelessScope(list(zip(variables, [*trainable, *others], strict=True))) as scope:
            loss, row = self._batch_loss(x, y)
        return loss, (row, [scope.get_current_value(variable) for variable in self._state[1]])
