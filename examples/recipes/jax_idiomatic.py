"""JAX, style `idiomatic`: the training loop of JAX's MNIST example.

One jitted step computes the gradient and the update, and Python calls it with each batch as NumPy
arrays. It is easy to follow, and the baseline that `fast` is compared with.
"""

from __future__ import annotations

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


@jax.jit
def step(weights, velocity, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    velocity = jax.tree.map(
        lambda v, g, w: MOMENTUM * v - RATE * (g + DECAY * w), velocity, gradients, weights
    )
    return jax.tree.map(jnp.add, weights, velocity), velocity, loss


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    images = images.reshape(-1, 784).astype(np.float32) / 256
    labels = labels.astype(np.int32)
    velocity = jax.tree.map(jnp.zeros_like, weights)
    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        for indices in batches:
            weights, velocity, loss = step(weights, velocity, images[indices], labels[indices])
            losses.append(loss)  # float(loss) would wait for the device in every step
        mean = np.mean(jax.device_get(losses[-len(batches) :]))
        print(
            f"epoch {epoch + 1}: loss {mean:.4f}, "
            f"{batches.size / (time.perf_counter() - start):,.0f} samples/s"
        )
    return np.array(jax.device_get(losses))


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
