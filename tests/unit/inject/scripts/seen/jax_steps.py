"""20 steps on 8 examples each, with one peculiarity, which the argument names."""

import sys

import jax
import jax.numpy as jnp

inputs = jax.random.normal(jax.random.key(0), (8, 6))
targets = inputs[:, :2]
first, second = jax.random.split(jax.random.key(1))
weights = {
    "w": 0.3 * jax.random.normal(first, (6, 16)),
    "b": jnp.zeros(16),
    "v": 0.3 * jax.random.normal(second, (16, 2)),
}


def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["w"] + weights["b"]) @ weights["v"] - y) ** 2)


def moved(weights, gradients, rate):
    return jax.tree.map(lambda w, g: w - rate * g, weights, gradients)


@jax.jit
def step(weights, x, y, rate):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return moved(weights, gradients, rate), loss


@jax.jit
def step_of_few(weights, x, y):
    bias = {"b": weights["b"]}
    loss, gradients = jax.value_and_grad(lambda b: loss_of({**weights, **b}, x, y))(bias)
    return {**weights, **moved(bias, gradients, 0.1)}, loss


@jax.jit
def passed_through(weights, x, y):
    return weights, loss_of(weights, x, y)


@jax.jit
def norm_of_gradients(weights, sums, x, y):
    gradients = jax.grad(loss_of)(weights, x, y)
    return weights, sums + sum(jnp.sum(each**2) for each in jax.tree.leaves(gradients))


gradient = jax.jit(jax.value_and_grad(loss_of))
apply = jax.jit(moved)
name = sys.argv[1]
sums = jnp.zeros(())

if name == "warmed up":
    step(weights, inputs, targets, 0.1)
if name == "norms":
    for _ in range(4):
        weights, sums = norm_of_gradients(weights, sums, inputs, targets)
for number in range(20):
    if name in ("warmed up", "norms"):
        weights, loss = step(weights, inputs, targets, 0.1)
    elif name == "no change at first":
        weights, loss = step(weights, inputs, targets, 0.0 if number < 10 else 0.1)
    elif name == "few weights":
        weights, loss = step_of_few(weights, inputs, targets)
    elif name == "passed through":
        weights, loss = step(weights, inputs, targets, 0.1)
        if number % 10 == 0:
            weights, _ = passed_through(weights, inputs, targets)
    elif name == "decayed outside":
        weights, loss = step(weights, inputs, targets, 0.1)
        weights = jax.tree.map(lambda each: 0.999 * each, weights)
    elif name == "applied outside":
        loss, gradients = gradient(weights, inputs, targets)
        weights = moved(weights, gradients, 0.1)
    elif name == "not jitted":
        loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, targets)
        weights = moved(weights, gradients, 0.1)
    elif name == "added up":
        loss, gradients = gradient(weights, inputs, targets)
        gradients = jax.tree.map(jnp.add, gradients, gradient(weights, inputs, targets)[1])
        weights = apply(weights, gradients, 0.1)
    elif name == "saliency":
        images = jax.random.normal(jax.random.key(number), (8, 6))
        jax.grad(loss_of, argnums=1)(weights, images, targets)
        jax.jit(jax.grad(loss_of, argnums=1))(weights, images, targets)
