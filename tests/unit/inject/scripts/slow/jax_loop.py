"""A step of JAX whose loss is printed, and chooses the learning rate with ``chooses``; with
``keeps``, the first weights are used at the end."""

import sys

import jax
import jax.numpy as jnp

weights = first = {"w": jnp.ones((8, 4)), "b": jnp.zeros(4)}
inputs = jax.random.normal(jax.random.key(0), (16, 8))


@jax.jit
def step(weights, x, rate):
    def loss_of(weights):
        return jnp.mean((x @ weights["w"] + weights["b"] - 1) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - rate * g, weights, gradients), loss


kept = weights
rate = 0.01
for number in range(60):
    weights, loss = step(weights, inputs, rate)
    if sys.argv[1:] == ["chooses"] and loss.item() < 0.1:
        rate = 0.001
    if number == 30:
        kept = weights
    print(float(loss))
if sys.argv[1:] == ["keeps"]:
    print(float(kept["w"].sum()))
