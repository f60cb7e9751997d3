"""JAX as its own MNIST example trains: a network of `stax`, an optimiser triple, one jitted
`update`, and batches that NumPy gathers on the host.

It differs from the workload's definition: RMSprop takes epsilon under the root, mlp512's loss is
not clipped, and mlp128 draws a new order for every epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import arrays
import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.example_libraries import optimizers, stax
from jax.example_libraries.stax import Conv, Dense, Dropout, Flatten, LogSoftmax, MaxPool, Relu
from jax.nn.initializers import glorot_uniform, variance_scaling, zeros
from turns import Turns

Layer = tuple[Any, Any]


def mlp32(mode: str) -> Layer:  # noqa: ARG001
    return stax.serial(
        Flatten,
        Dense(32, glorot_uniform(), zeros),
        Relu,
        Dense(10, glorot_uniform(), zeros),
        LogSoftmax,
    )


def mlp128(mode: str) -> Layer:  # noqa: ARG001
    return stax.serial(
        Flatten, Dense(128, around(0.01), zeros), Relu, Dense(64, around(0.01), zeros), Relu,
        Dense(10, around(0.01), zeros), LogSoftmax,
    )  # fmt: skip


def mlp512(mode: str) -> Layer:
    return stax.serial(
        # stax counts what is kept
        Flatten, Dense(512, glorot_uniform(), zeros), Relu, Dropout(0.8, mode),
        Dense(512, glorot_uniform(), zeros), Relu, Dropout(0.8, mode),
        Dense(10, glorot_uniform(), zeros), LogSoftmax,
    )  # fmt: skip


def cnn(mode: str) -> Layer:
    fan_in = variance_scaling(1 / 3, "fan_in", "uniform")
    return stax.serial(
        Conv(10, (5, 5), W_init=fan_in, b_init=around(25**-0.5)),
        MaxPool((2, 2), strides=(2, 2)),
        Relu,
        Conv(20, (5, 5), W_init=fan_in, b_init=around(250**-0.5)),
        channel_dropout(0.5, mode),
        MaxPool((2, 2), strides=(2, 2)),
        Relu,
        Flatten,
        Dense(50, fan_in, around(320**-0.5)),
        Relu,
        Dropout(0.5, mode),
        Dense(10, fan_in, around(50**-0.5)),
        LogSoftmax,
    )


def around(half_width: float) -> Any:
    """Uniform from minus to plus the half width."""
    return lambda key, shape, dtype=jnp.float32: random.uniform(
        key, shape, dtype, -half_width, half_width
    )


def channel_dropout(kept: float, mode: str) -> Layer:
    """Whole feature maps, which `stax` does not have."""

    def apply(params: tuple[()], x: jax.Array, rng: jax.Array | None = None, **_: Any) -> jax.Array:  # noqa: ARG001
        if mode != "train":
            return x
        return jnp.where(random.bernoulli(rng, kept, (len(x), 1, 1, x.shape[3])), x / kept, 0)

    return lambda _, shape: (shape, ()), apply


NETWORKS = {"mnist-mlp32": mlp32, "mnist-mlp128": mlp128, "mnist-mlp512": mlp512, "mnist-cnn": cnn}
BATCHES = {"mnist-mlp32": 60_000, "mnist-mlp128": 100, "mnist-mlp512": 128, "mnist-cnn": 200}
OPTIMIZERS = {
    "mnist-mlp32": optimizers.adam(0.001),
    "mnist-mlp128": optimizers.momentum(0.1, mass=0.9),
    "mnist-mlp512": optimizers.rmsprop(0.001, gamma=0.9, eps=1e-8),
    "mnist-cnn": optimizers.momentum(0.01, mass=0.5),
}


def pixels(workload: str, images: np.ndarray) -> np.ndarray:
    """Convert images to the network's input."""
    x = images.astype(np.float32) / (256 if workload == "mnist-mlp128" else 255)
    return (x - np.float32(0.1307)) / np.float32(0.3081) if workload == "mnist-cnn" else x


def batches(
    rng: np.random.RandomState, x: np.ndarray, y: np.ndarray, size: int
) -> Iterator[tuple[Any, Any]]:
    """One epoch in a new order."""
    order = rng.permutation(len(x))
    for start in range(0, len(x), size):
        taken = order[start : start + size]
        yield x[taken], y[taken]


def main() -> None:
    turns = Turns()
    turns.versions(jax=jax.__version__)
    if turns.workload not in NETWORKS:
        turns.cannot("the example covers MNIST")
    x_train, y_train, x_test, y_test = arrays.load(turns.folder)
    x_train = pixels(turns.workload, x_train)
    y_train = np.eye(10, dtype=np.float32)[y_train]
    size = BATCHES[turns.workload]
    decay = 1e-5 if turns.workload == "mnist-mlp128" else 0.0

    init_random_params, predict = NETWORKS[turns.workload]("train")
    _, predict_test = NETWORKS[turns.workload]("test")
    opt_init, opt_update, get_params = OPTIMIZERS[turns.workload]

    def loss(params: Any, inputs: jax.Array, targets: jax.Array, key: jax.Array) -> jax.Array:
        cross_entropy = -jnp.mean(jnp.sum(predict(params, inputs, rng=key) * targets, axis=1))
        if not decay:
            return cross_entropy
        return cross_entropy + 0.5 * decay * sum(
            jnp.sum(jnp.square(each)) for each in jax.tree.leaves(params)
        )

    @jax.jit
    def update(
        i: int, opt_state: Any, inputs: jax.Array, targets: jax.Array
    ) -> tuple[Any, jax.Array]:
        key = random.fold_in(random.key(1), i)
        value, gradients = jax.value_and_grad(loss)(get_params(opt_state), inputs, targets, key)
        return opt_update(i, gradients, opt_state), value

    _, params = init_random_params(random.key(0), (-1, 28, 28, 1))
    opt_state = opt_init(params)
    itercount = itertools.count()
    rng = np.random.RandomState(0)
    # One batch is the whole training set: it is put on the device once, not gathered anew for every
    # step.
    whole = [(jnp.asarray(x_train), jnp.asarray(y_train))] if size == len(x_train) else None

    for _ in range(turns.epochs):
        losses = []
        for inputs, targets in whole or batches(rng, x_train, y_train, size):
            opt_state, value = update(next(itercount), opt_state, inputs, targets)
            losses.append(value)
        jax.block_until_ready(opt_state)
        turns.epoch_done(loss=float(np.mean(jax.device_get(losses))))

    # Dropout layers of the test network still ask for a key, and leave it alone.
    predicted = predict_test(
        get_params(opt_state), pixels(turns.workload, x_test), rng=random.key(0)
    ).argmax(axis=1)
    turns.test_accuracy(float((np.asarray(predicted) == y_test).mean()))


if __name__ == "__main__":
    main()
