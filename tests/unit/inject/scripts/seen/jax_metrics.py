"""A jitted evaluation is given its own metrics; its loss function, too, is called before a step."""

import jax
import jax.numpy as jnp

weights = {"w": jnp.ones((8, 1)), "b": jnp.zeros(1)}
inputs = jax.random.normal(jax.random.key(0), (160, 8))


def loss_of(weights, x):
    return jnp.mean((x @ weights["w"] + weights["b"] - x[:, :1]) ** 2)


@jax.jit
def evaluate(weights, metrics, x):
    return loss_of(weights, x), weights, {key: value + 1.0 for key, value in metrics.items()}


@jax.jit
def measure(metrics, weights, x):
    return {"sum": metrics["sum"] + loss_of(weights, x)}


@jax.jit
def train(weights, x):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x)
    return loss, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)


for _ in range(3):
    metrics = {"sum": jnp.zeros(()), "by class": jnp.zeros(3)}
    same = weights
    for start in range(0, 160, 40):
        test, same, metrics = evaluate(same, metrics, inputs[start : start + 40])
    only = {"sum": jnp.zeros(())}
    for start in range(0, 160, 40):
        only = measure(only, weights, inputs[start : start + 40])
    for start in range(0, 160, 16):
        loss, weights = train(weights, inputs[start : start + 16])
