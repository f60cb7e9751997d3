"""`model.fit` as in Keras's tutorials.

It runs on TensorFlow, or on the engine that `KERAS_BACKEND` names. JAX compiles the step anyway;
TensorFlow does if it sees a GPU, and otherwise runs it as a graph; PyTorch runs one operation at a
time.
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np


class BatchLoss(keras.metrics.Metric):
    """The loss of the last batch. The `loss` that `fit` reports is a mean since the epoch
    started."""

    def __init__(self):
        super().__init__(name="batch_loss")
        self.value = self.add_variable((), "zeros")

    def update_state(self, value):
        self.value.assign(value)

    def result(self):
        return keras.ops.copy(self.value)


class Network(keras.Sequential):
    """A network that keeps the loss of each batch."""

    def __init__(self, layers):
        super().__init__(layers)
        self.batch_loss = BatchLoss()

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = self.loss(y, y_pred)
        self.batch_loss.update_state(loss)
        return loss


class SGD(keras.optimizers.SGD):
    """Adds weight decay to the gradient. Keras's own `weight_decay` bypasses the momentum; a
    penalty is slower."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient + 1e-5 * variable, variable, learning_rate)


def build(weights):
    """Build the network with these weights."""
    dense = [keras.layers.Dense(len(bias)) for _, bias in weights]
    hidden = [layer for each in dense[:-1] for layer in (each, keras.layers.ReLU())]
    model = Network([keras.Input((28, 28)), keras.layers.Flatten(), *hidden, dense[-1]])
    for layer, arrays in zip(dense, weights):
        layer.set_weights(arrays)
    return model


class Report(keras.callbacks.Callback):
    """Keeps the loss of each batch, without making `fit` wait for it."""

    async_safe = True

    def __init__(self):
        super().__init__()
        self.losses = {}

    def on_train_batch_end(self, batch, logs=None):
        self.losses[batch] = logs["batch_loss"]


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    model = build(weights)
    report = Report()
    model.compile(
        optimizer=SGD(0.1, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    images = images.astype("float32") / 256
    shuffled = np.empty_like(images)
    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        order = batches.reshape(-1)
        size = batches.shape[1]
        # a new array would cost page faults
        np.take(images, order, axis=0, out=shuffled, mode="clip")
        model.fit(
            shuffled, labels[order], batch_size=size, shuffle=False, verbose=0, callbacks=[report]
        )
        losses.append(np.array([report.losses[step] for step in range(len(batches))]))
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
