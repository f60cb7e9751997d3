"""Keras on TensorFlow, many steps in one compiled call.

Images and labels are on the device before training starts. A loop over the batches is compiled by
XLA with the step in it, so Python, the input pipeline and callbacks cost once per call, not once
per step.
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf


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
    images = tf.constant(images.astype("float32") / 256)
    labels = tf.constant(labels)

    @tf.function(jit_compile=True)
    def steps(batches):
        losses = tf.TensorArray(tf.float32, len(batches))
        for step in tf.range(len(batches)):
            x = tf.gather(images, batches[step])
            y = tf.gather(labels, batches[step])
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
                total = loss + tf.add_n(model.losses)
            optimizer.apply(
                tape.gradient(total, model.trainable_variables), model.trainable_variables
            )
            losses = losses.write(step, loss)
        return losses.stack()

    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        losses.append(steps(tf.constant(batches)).numpy())
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
