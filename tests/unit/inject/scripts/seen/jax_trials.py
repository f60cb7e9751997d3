"""Trainings with one jitted step; the argument says what is between them."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np

inputs = jax.random.normal(jax.random.key(0), (8, 12))


def made(seed):
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "w": 0.3 * jax.random.normal(first, (12, 16)),
        "b": jnp.zeros(16),
        "v": 0.3 * jax.random.normal(second, (16, 2)),
    }


def loss_of(weights, x):
    predicted = jnp.tanh(x @ weights["w"] + weights["b"]) @ weights["v"]
    return jnp.mean((predicted - x[:, :2]) ** 2)


def changed(weights, momentum, x):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda w, m: w - 0.05 * m, weights, momentum), momentum, loss


step = jax.jit(changed)
donating = functools.partial(jax.jit, donate_argnums=(0, 1))(changed)


def zeros(weights):
    return jax.tree.map(jnp.zeros_like, weights)


def trained(step, weights, steps=10, momentum=None):
    momentum = zeros(weights) if momentum is None else momentum
    for _ in range(steps):
        weights, momentum, _ = step(weights, momentum, inputs)
    return weights


def mean_of(one, other):
    return jax.tree.map(lambda a, b: (a + b) / 2, one, other)


name = sys.argv[1]
if name == "seeds":
    for seed in range(3):
        trained(step, made(seed))
elif name == "donated":
    for seed in range(3):
        trained(donating, made(seed))
elif name == "same start":
    start = made(0)
    for _ in range(3):
        trained(step, start)
elif name == "factory":
    for seed in range(3):
        trained(jax.jit(lambda *each: changed(*each)), made(seed))
elif name == "optimiser anew":
    weights = made(0)
    for _ in range(3):
        weights = trained(step, weights)
elif name == "restored":
    kept = jax.tree.map(np.asarray, trained(step, made(0)))
    trained(step, trained(step, jax.tree.map(jnp.asarray, kept)))
elif name == "averaged":
    weights = made(0)
    for _ in range(3):
        weights = mean_of(weights, trained(step, weights))
elif name == "clients":
    weights = made(0)
    for _ in range(3):
        weights = mean_of(trained(step, weights, 5), trained(step, weights, 5))
elif name == "in turns":
    networks = [(made(seed), zeros(made(seed))) for seed in range(3)]
    for _ in range(10):
        networks = [step(*each, inputs)[:2] for each in networks]
elif name == "line search":
    weights = made(0)
    for _ in range(15):
        tried = [step(weights, zeros(weights), inputs * scale) for scale in (1, 2)]
        weights = tried[0][0]
