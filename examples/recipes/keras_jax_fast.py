"""Keras on JAX, many steps in one compiled call.

Images and labels are on the device before training starts. Keras's stateless functions make the
step a pure function, which `jax.lax.scan` runs over the batches, so Python costs once per call, not
once per step.
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np


def build(weights):
    """Build the network with these weights. Half the L2 penalty has the gradient of weight
    decay."""
    decay = keras.regularizers.L2(0.5e-5)
    dense = [
        keras.layers.Dense(len(bias), kernel_regularizer=decay, bias_regularizer=decay)
        for _, bias in weights
    ]
    hidden = [layer for each in dense[:-1] for layer in (each, keras.layers.ReLU())]
    model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), *hidden, dense[-1]])
    for layer, arrays in zip(dense, weights):
        layer.set_weights(arrays)
    return model


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    model = build(weights)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = jax.numpy.asarray(images, "float32") / 256
    labels = jax.numpy.asarray(labels)

    def total_loss(trained, others, x, y):
        outputs, others, penalties = model.stateless_call(
            trained, others, x, training=True, return_losses=True
        )
        loss = loss_of(y, outputs)
        return loss + sum(penalties), (loss, others)

    def one_step(state, batch):
        trained, others, moments = state
        gradient = jax.value_and_grad(total_loss, has_aux=True)
        (_, (loss, others)), gradients = gradient(trained, others, images[batch], labels[batch])
        trained, moments = optimizer.stateless_apply(moments, gradients, trained)
        return (trained, others, moments), loss

    steps = jax.jit(lambda state, batches: jax.lax.scan(one_step, state, batches), donate_argnums=0)
    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    state = jax.tree.map(lambda variable: variable.value, variables)
    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        state, found = steps(state, batches)
        losses.append(np.asarray(found))
        seconds = time.perf_counter() - start
        print(
            f"epoch {epoch + 1}: loss {losses[-1].mean():.4f}, {batches.size / seconds:,.0f} "
            "samples/s"
        )
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
