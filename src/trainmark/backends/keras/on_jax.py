"""JAX as the engine of Keras; ``fast`` is a loop within a compiled function of Keras's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from trainmark.backends.base import Device, Job, Options
from trainmark.backends.engines import jax as engines
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import MOST_STEPS, KerasFastTrainer
from trainmark.backends.keras.precision import ARITHMETIC, supported

State = tuple[list[Any], list[Any], list[Any]]
"""Values of the trainable variables, of other variables that a step changes, and of the
optimiser's."""


class FastOnJax(KerasFastTrainer):
    """Runs steps in a ``jax.lax`` loop, or one by one if that is faster."""

    def __init__(self, job: Job, engine: Engine) -> None:
        super().__init__(job, engine)
        learner = self._learner
        self._state = (
            learner.trainable_variables,
            learner.non_trainable_variables,
            self._optimizer.variables,
        )
        self._one_step = jax.jit(self._step_on, donate_argnums=0)
        self._many_steps = jax.jit(self._steps_on, donate_argnums=0)

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        state = jax.tree.map(_value, self._state)
        rows: Any = []
        if not self._slow_in_loops:
            state, rows = self._many_steps(state, x, y, batches, count)
        for step in range(count):
            if self._slow_in_loops:
                state, row = self._one_step(state, x, y, batches, step)
                rows.append(row)
            tick()
        jax.tree.map(_assign, self._state, state)
        return rows

    def _steps_on(
        self, state: State, x: Any, y: Any, batches: Any, count: Any
    ) -> tuple[State, Any]:
        def one_step(step: Any, carried: tuple[State, Any]) -> tuple[State, Any]:
            state, row = self._step_on(carried[0], x, y, batches, step)
            return state, carried[1].at[step].set(row)

        return jax.lax.fori_loop(
            0, count, one_step, (state, jax.numpy.zeros((MOST_STEPS, 3), self._dtype))
        )

    def _step_on(self, state: State, x: Any, y: Any, batches: Any, step: Any) -> tuple[State, Any]:
        x, y = self._examples(x, y, batches, step)
        trainable, others, optimizer = state
        gradient = jax.value_and_grad(self._loss_of, has_aux=True)
        (_, (row, others)), gradients = gradient(trainable, others, x, y)
        trainable, optimizer = self._optimizer.stateless_apply(optimizer, gradients, trainable)
        if not self._updates:
            trainable = [engines.unsettled(trainable[0], step), *trainable[1:]]
        return (trainable, others, optimizer), row

    def _loss_of(
        self, trainable: list[Any], others: list[Any], x: Any, y: Any
    ) -> tuple[Any, tuple[Any, list[Any]]]:
        outputs, others, l2_losses = self._learner.stateless_call(
            trainable, others, x, training=True, return_losses=True
        )
        total, row = self._judge(outputs, y, l2_losses)
        return total, (row, others)


class JaxEngine(Engine):
    """JAX on CPU and CUDA."""

    title = "JAX"
    version = jax.__version__
    oldest = engines.OLDEST
    newest = engines.NEWEST
    fast_trainer = FastOnJax

    def packages(self) -> dict[str, str]:
        """Return the versions of JAX and its compiler."""
        return engines.packages()

    def devices(self) -> tuple[Device, ...]:
        """Return the CPU and any GPUs."""
        return tuple(_devices())

    def prepare(self, options: Options) -> None:
        """Set memory and arithmetic.

        Threads can only be set by the environment, before JAX is imported.
        """
        engines.take_share(options)
        arithmetic = ARITHMETIC[options.precision]
        jax.config.update(
            "jax_default_matmul_precision", "tensorfloat32" if arithmetic.tf32 else "highest"
        )
        jax.config.update("jax_enable_x64", arithmetic.floatx == "float64")
        by_id = {device.id: found for device, found in _devices().items()}
        self._device = by_id[options.device]
        jax.config.update("jax_default_device", self._device)

    def reseed(self, seed: int) -> None:
        """Do nothing: Keras shuffles with NumPy."""

    def synchronize(self, values: Sequence[Any]) -> None:
        """Wait for the state."""
        jax.block_until_ready(values)

    def settings(self) -> dict[str, Any]:
        """Return the settings as JAX reports them now."""
        return engines.settings()

    def device_peak_bytes(self) -> int | None:
        """Return JAX's peak memory on the device, if it reports it."""
        return engines.peak_bytes(self._device)


def _value(variable: Any) -> Any:
    return variable.value


def _assign(variable: Any, value: Any) -> Any:
    return variable.assign(value)


def _devices() -> dict[Device, Any]:
    """Return each device, with JAX's object for it."""
    return engines.devices(supported("JAX", gpu=False), supported("JAX", gpu=True))


ENGINE = JaxEngine()
