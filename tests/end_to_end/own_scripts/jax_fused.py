"""A script in the style of JAX's tutorial: one jitted function returns new weights and the loss; an
accuracy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
x = rng.random((120, 12), dtype="float32")
y = rng.integers(0, 4, 120)


def init(key):
    first, second = jax.random.split(key)
    return [
        (0.1 * jax.random.normal(key, shape), jnp.zeros(shape[1]))
        for key, shape in ((first, (12, 32)), (second, (32, 4)))
    ]


def predict(params, x):
    (w1, b1), (w2, b2) = params
    return jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)


def loss_fn(params, x, y):
    return -jnp.take_along_axis(predict(params, x), y[:, None], axis=1).mean()


@partial(jax.jit, donate_argnums=0, static_argnames=("momentum",))
def update(state, x, y, momentum=0.9):
    params, velocity = state
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
    return (params, velocity), {
        "accuracy": (predict(params, x).argmax(1) == y).mean(dtype="float32"),
        "loss": loss,
    }


@jax.jit
def accuracy(params, x, y):
    return (predict(params, x).argmax(1) == y).mean(dtype="float32")


assert update.__name__ == "update" and callable(update.lower) and callable(update.clear_cache)
params = init(jax.random.key(0))
state = params, jax.tree.map(jnp.zeros_like, params)
for _ in range(3):
    for start in range(0, 120, 16):
        state, metrics = update(state, x[start : start + 16], y[start : start + 16])
        print("loss", repr(float(metrics["loss"])))
    print("accuracy", float(accuracy(state[0], x, y)))
