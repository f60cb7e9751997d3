"""Trains with calls that are unlike others, which the argument names."""

import functools
import sys
import threading
import time

import jax
import jax.numpy as jnp

first, second = jax.random.split(jax.random.key(0))
weights = {"w": 0.3 * jax.random.normal(first, (6, 16)), "v": jnp.full((16, 2), 0.1)}
inputs = jax.random.normal(second, (8, 6))
targets = inputs[:, :2]


def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["w"]) @ weights["v"] - y) ** 2)


def moved(weights, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def step_of(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return moved(weights, gradients), loss


class Model:
    """A static argument that has attributes of an array."""

    dtype = jnp.float32
    shape = (3, 4)
    ndim = 2
    size = 12


step = jax.jit(step_of)
jitted_loss = jax.jit(loss_of)
name = sys.argv[1]

if name == "gradients of a jitted function":
    for _ in range(20):
        loss, gradients = jax.value_and_grad(jitted_loss)(weights, inputs, targets)
        weights = moved(weights, gradients)
elif name == "traced between":
    for number in range(20):
        if number % 5 == 0:
            jax.eval_shape(step, weights, inputs, targets)
            jax.make_jaxpr(step)(weights, inputs, targets)
            jax.vmap(jitted_loss, (None, 0, 0))(weights, inputs, targets)
        weights, loss = step(weights, inputs, targets)
elif name == "lowered first":
    step.lower(weights, inputs, targets).compile().cost_analysis()
    for _ in range(20):
        weights, loss = step(weights, inputs, targets)
elif name == "static arguments":
    static = functools.partial(jax.jit, static_argnums=0)
    step = static(lambda _, *args: step_of(*args))
    evaluate = static(lambda _, *args: loss_of(*args))
    model = Model()
    for number in range(20):
        weights, loss = step(model, weights, inputs, targets)
        if number == 9:
            evaluate(model, weights, inputs, targets)
elif name == "another thread":
    act = jax.jit(lambda state: 2 * jnp.sin(state))
    acts = threading.Event()
    ends = threading.Event()

    def actor():
        state = jnp.ones((8, 3))
        while not ends.is_set():
            state = act(state)
            acts.set()
            time.sleep(0.001)

    thread = threading.Thread(target=actor)
    thread.start()
    acts.wait()
    for _ in range(20):
        weights, loss = step(weights, inputs, targets)
        acts.clear()
        acts.wait()
    ends.set()
    thread.join()
elif name == "donated losses":
    halve = jax.jit(lambda loss: loss / 2, donate_argnums=0)
    for _ in range(20):
        weights, loss = step(weights, inputs, targets)
        halve(loss)
elif name == "not kept":
    weights = {"w": jnp.ones((6, 9_000)), "v": jnp.ones((9_000, 2))}
    for _ in range(5):
        weights, loss = step(weights, inputs, targets)
    del weights
    print(sum(each.size > 10_000 for each in jax.live_arrays()))
