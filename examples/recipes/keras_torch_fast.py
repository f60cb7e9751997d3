"""Keras on PyTorch, a plain loop on data that stays on the device.

Images and labels are on the device before training starts, batches are gathered there, and no loss
is fetched before the last step. `fit` makes each batch on the host, copies it, updates metrics and
calls callbacks.
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch


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
    variables = model.trainable_variables
    optimizer.build(variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = keras.ops.convert_to_tensor(images.astype("float32") / 256)
    labels = keras.ops.convert_to_tensor(labels)

    def step(x, y):
        model.zero_grad()
        loss = loss_of(y, model(x, training=True))
        (loss + sum(model.losses)).backward()
        with torch.no_grad():
            optimizer.apply([variable.value.grad for variable in variables], variables)
        return loss.detach()

    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        found = [
            step(images[batch], labels[batch]) for batch in keras.ops.convert_to_tensor(batches)
        ]
        losses.append(torch.stack(found).cpu().numpy())
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
