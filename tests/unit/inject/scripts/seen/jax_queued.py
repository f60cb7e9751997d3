"""Steps are queued without a read. A short evaluation, jitted or not, waits for all of them."""

import sys
import time

import jax
import jax.numpy as jnp

inputs = jax.random.normal(jax.random.key(0), (1200, 600))
few = jnp.tile(inputs, (20, 1)) if "long" in sys.argv else inputs[:4]
weights = 0.01 * jnp.ones((600, 600))


def loss_of(weights, x):
    for _ in range(6):
        x = jnp.tanh(x @ weights)
    return jnp.mean((x - 0.1) ** 2)


@jax.jit
def step(weights, x):
    return weights - 0.1 * jax.grad(loss_of)(weights, x)


evaluated = jax.jit(loss_of) if sys.argv[1] == "jitted" else loss_of
began = time.perf_counter()
for number in range(40):
    weights = step(weights, inputs)
    if not number:
        weights.block_until_ready()
        began = time.perf_counter()
    if number % 10 == 9 and sys.argv[1] in ("jitted", "not jitted"):
        float(evaluated(weights, few))
if sys.argv[1] != "not read":
    float(weights.sum())
    print(time.perf_counter() - began)
