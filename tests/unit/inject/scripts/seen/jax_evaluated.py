"""60 steps, with an accuracy or something else that is not jitted; the argument says what."""

import sys
import time

import jax
import jax.numpy as jnp

inputs = jax.random.normal(jax.random.key(0), (16, 12))
many = jax.random.normal(jax.random.key(1), (200_000, 12))
weights = 0.1 * jnp.ones((12, 16))
name = sys.argv[1]


def loss_of(weights, x):
    return jnp.mean((jnp.tanh(x @ weights) - 0.1) ** 2)


@jax.jit
def step(weights, x):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x)
    return weights - 0.1 * gradient, loss


@jax.jit
def clipped(weights):
    return jnp.clip(weights, -0.105, 0.105)


evaluated = jax.jit(loss_of)

for number in range(60):
    weights, loss = step(weights, inputs)
    if name == "norms":
        norm = jnp.linalg.norm(weights)
    elif name == "clipped" and number % 5 == 4:
        weights = clipped(weights)
    elif name == "every step":
        float(jnp.mean(jnp.tanh(inputs @ weights)))
    elif number % 20 == 19:
        if name == "printed":
            float(jnp.take(weights, jnp.array([1, 2, 3])).sum())
        elif name == "pauses":
            time.sleep(0.1)
            float(loss)
        elif name == "plotted":
            float(evaluated(weights, inputs))
            time.sleep(0.5)
        elif number == 39:
            time.sleep(0.02)
        else:
            float(loss_of(weights, many))
