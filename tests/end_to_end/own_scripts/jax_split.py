"""A script in the style of Optax' first example, with a handwritten optimiser: gradients and their
use are separate."""

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
data = rng.random((200, 30), dtype="float32")


@jax.jit
def normalise(batch):
    return batch - batch.mean(axis=0)


@jax.jit
def compute(params, batch):
    return jax.value_and_grad(
        lambda p: ((jnp.tanh(batch @ p["in"]) @ p["out"] - batch) ** 2).mean()
    )(params)


@jax.jit()
def apply(params, opt_state, grads):
    count, mean, square = opt_state
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    step = 0.01 * jnp.sqrt(1 - 0.99 ** (count + 1)) / (1 - 0.9 ** (count + 1))
    params = jax.tree.map(lambda p, m, s: p - step * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, (count + 1, mean, square)


params = {
    "in": jnp.asarray(rng.random((30, 8), "float32")),
    "out": jnp.asarray(rng.random((8, 30), "float32")),
}
zeros = jax.tree.map(jnp.zeros_like, params)
opt_state = jnp.float32(0), zeros, zeros
for step in range(25):
    loss, grads = compute(params, normalise(data[step * 8 : step * 8 + 8]))
    params, opt_state = apply(params, opt_state, grads)
    print("loss", repr(float(loss)))
