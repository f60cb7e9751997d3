"""A step that is made in each turn of the loop; with a word, it closes over something new."""

import sys

import jax
import jax.numpy as jnp

weights = jnp.ones((8, 4))
inputs = jax.random.normal(jax.random.key(0), (16, 8))


def made(scale):
    @jax.jit
    def step(weights, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((scale * x @ w - 1) ** 2))(weights)
        return weights - 0.01 * gradient, loss

    return step


for number in range(40):
    scale = 1.0 + number / 1000 if len(sys.argv) > 1 else 1.0
    weights, loss = made(scale)(weights, inputs)
    print(float(loss))
