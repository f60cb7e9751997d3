"""Several steps in a scan, with donated arguments and a static number. 5 steps."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnums=1, donate_argnums=0)
def epoch(weights, steps, batches):
    def step(w, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)
        return w - 0.05 * gradient, loss

    return jax.lax.scan(step, weights, batches[:steps])


weights = jnp.zeros(4)
key = jax.random.key(0)
for _ in range(5):
    key, other = jax.random.split(key)
    weights, losses = epoch(weights, 6, jax.random.normal(other, (6, 8, 4)))
    print([float(each).hex() for each in losses])
