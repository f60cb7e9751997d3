"""A jitted step of JAX with handwritten SGD. 20 steps."""

import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
x = jax.random.normal(key, (64, 3))
y = x @ jnp.arange(3.0)
weights = {"w": jnp.zeros(3), "b": jnp.zeros(())}


def loss_of(weights, x, y):
    return jnp.mean((x @ weights["w"] + weights["b"] - y) ** 2)


@jax.jit
def step(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


for _ in range(20):
    weights, loss = step(weights, x, y)
    print(float(loss).hex())
