"""Trains for 20 steps, next to other jitted functions with a state, which the argument names."""

import sys

import jax
import jax.numpy as jnp

first, second = jax.random.split(jax.random.key(0))
weights = {"w": 0.3 * jax.random.normal(first, (6, 16)), "v": jnp.full((16, 2), 0.1)}
inputs = jax.random.normal(second, (80, 6))
targets = inputs[:, :2]


def predicted(weights, x):
    return jnp.tanh(x @ weights["w"]) @ weights["v"]


def loss_of(weights, x, y):
    return jnp.mean((predicted(weights, x) - y) ** 2)


def step_of(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


@jax.jit
def over_batches(weights, xs, ys):
    weights, losses = jax.lax.scan(lambda w, batch: step_of(w, *batch), weights, (xs, ys))
    return weights, losses.mean()


@jax.jit
def environment(state, action):
    return 0.99 * state + 0.1 * action.mean(), state.sum(-1)


@jax.jit
def add_up(metrics, loss):
    return {"sum": metrics["sum"] + loss, "number": metrics["number"] + 1}


@jax.jit
def cluster(centres, x):
    nearest = jnp.argmin(((x[:, None] - centres[None]) ** 2).sum(-1), 1)
    members = jax.nn.one_hot(nearest, len(centres))
    return members.T @ x / (members.sum(0)[:, None] + 1e-6)


@jax.jit
def average(mean, weights):
    return jax.tree.map(lambda m, w: 0.9 * m + 0.1 * w, mean, weights)


step = jax.jit(step_of)
act = jax.jit(predicted)
evaluate = jax.jit(loss_of)
name = sys.argv[1]
state = inputs[:8]
mean = weights
others = jax.tree.map(lambda each: each + 0.1, weights)
metrics = {"sum": jnp.zeros(()), "number": jnp.zeros(())}
other_step = jax.jit(lambda weights, x, y: step_of(weights, x, -y))

if name == "clusters":
    centres = inputs[:8]
    for _ in range(60):
        centres = cluster(centres, inputs)
for number in range(20):
    batch = slice(8 * (number % 10), 8 * (number % 10) + 8)
    if name == "environment":
        for _ in range(16):
            state, reward = environment(state, act(weights, state))
    if name == "scan":
        weights, loss = over_batches(weights, inputs.reshape(10, 8, 6), targets.reshape(10, 8, 2))
        continue
    weights, loss = step(weights, inputs[batch], targets[batch])
    if name == "averages":
        mean = average(mean, weights)
    elif name == "metrics in the loop":
        metrics = add_up(metrics, loss)
    elif name == "two networks":
        others, loss = other_step(others, inputs[batch], targets[batch])
    if number % 10 == 9:
        if name == "metrics of evaluations":
            for each in jnp.split(inputs, 10):
                metrics = add_up(metrics, act(weights, each).mean())
        elif name in ("averages", "metrics in the loop", "two networks"):
            for x, y in zip(jnp.split(inputs, 10), jnp.split(targets, 10), strict=True):
                evaluate(weights, x, y)
