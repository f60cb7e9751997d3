"""JAX, style `fast`: the data stays on the device, and one call of one compiled program trains a
whole epoch.

`lax.scan` loops over the batches on the device, so Python launches one operation per epoch; donated
weights are updated in place; the losses come back at the end. (On a CPU, XLA runs convolutions
inside a scan on one thread: with convolutions, jit and donate a single step instead, and call it
from Python.)
"""

from __future__ import annotations

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

RATE = 0.1
MOMENTUM = 0.9
DECAY = 1e-5


def loss_of(weights, x, y):
    for kernel, bias in weights[:-1]:
        x = jax.nn.relu(x @ kernel + bias)
    kernel, bias = weights[-1]
    log_probabilities = jax.nn.log_softmax(x @ kernel + bias)
    return -jnp.take_along_axis(log_probabilities, y[:, None], axis=1).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train_epoch(state, images, labels, batches):
    def step(state, indices):
        weights, velocity = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, images[indices], labels[indices])
        velocity = jax.tree.map(
            lambda v, g, w: MOMENTUM * v - RATE * (g + DECAY * w), velocity, gradients, weights
        )
        return (jax.tree.map(jnp.add, weights, velocity), velocity), loss

    return jax.lax.scan(step, state, batches)


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    images = jax.device_put(images.reshape(-1, 784).astype(np.float32) / 256)
    labels = jax.device_put(labels.astype(np.int32))
    weights = jax.tree.map(jnp.array, weights)  # copies: the state is donated
    state = weights, jax.tree.map(jnp.zeros_like, weights)
    losses = []
    for epoch, batches in enumerate(epochs.astype(np.int32)):
        start = time.perf_counter()
        state, of_epoch = train_epoch(state, images, labels, batches)
        losses.append(np.asarray(of_epoch))
        mean = losses[-1].mean()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1}: loss {mean:.4f}, {batches.size / seconds:,.0f} samples/s")
    return np.concatenate(losses)


if __name__ == "__main__":
    rng = np.random.default_rng(0)  # random images: the speed does not depend on them
    images = rng.integers(0, 256, (60_000, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 60_000)
    shapes = [(784, 128), (128, 64), (64, 10)]
    weights = [
        (rng.uniform(-0.01, 0.01, s).astype(np.float32), np.zeros(s[1], np.float32)) for s in shapes
    ]
    train(
        images,
        labels,
        weights,
        np.stack([rng.permutation(60_000).reshape(600, 100) for _ in range(3)]),
    )
