"""MXNet, style `idiomatic`: the training loop of the tutorials.

A symbol is wrapped in a `Module`, and `Module.fit` trains on the batches of an `NDArrayIter`. Every
batch is copied into the graph, and `fit` calls the optimiser and the metric after each step. (If
the order doesn't matter to you, use one `NDArrayIter(..., shuffle=True)` instead of `Epochs`.)
"""

from __future__ import annotations

import time

import mxnet as mx
import numpy as np

DEVICE = mx.gpu() if mx.context.num_gpus() else mx.cpu()


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    images = images.reshape(len(images), -1).astype(np.float32) / 256
    batches = Epochs(images, labels.astype(np.float32), epochs)
    x = mx.sym.Variable("data")
    names = ("hidden1", "hidden2", "output")
    for units, name in zip((128, 64), names):
        x = mx.sym.Activation(
            mx.sym.FullyConnected(x, num_hidden=units, name=name), act_type="relu"
        )
    logits = mx.sym.FullyConnected(x, num_hidden=10, name=names[-1])
    label = mx.sym.Variable("softmax_label")
    loss = mx.sym.mean(-mx.sym.pick(mx.sym.log_softmax(logits), label))
    network = mx.sym.Group(
        [mx.sym.SoftmaxOutput(logits, label, name="softmax"), mx.sym.BlockGrad(loss)]
    )
    given = {f"{name}_weight": mx.nd.array(kernel.T) for name, (kernel, _) in zip(names, weights)}
    given.update({f"{name}_bias": mx.nd.array(bias) for name, (_, bias) in zip(names, weights)})
    sgd = mx.optimizer.SGD(
        learning_rate=0.1, momentum=0.9, wd=1e-5, rescale_grad=1 / epochs.shape[-1]
    )
    losses = Losses()
    start = [time.perf_counter()]

    def after_epoch(epoch, *_):
        seconds = time.perf_counter() - start[0]
        start[0] = time.perf_counter()
        mean = mx.nd.concat(*losses.kept[-epochs.shape[1] :], dim=0).mean().asscalar()
        print(f"epoch {epoch + 1}: loss {mean:.4f}, {epochs[epoch].size / seconds:,.0f} samples/s")

    mx.mod.Module(network, context=DEVICE).fit(
        batches,
        eval_metric=losses,
        optimizer=sgd,
        arg_params=given,
        epoch_end_callback=after_epoch,
        num_epoch=len(epochs),
    )
    return mx.nd.concat(*losses.kept, dim=0).asnumpy()


class Epochs(mx.io.DataIter):
    """An `NDArrayIter` for each epoch, in the order given for it; `fit` calls `reset` after each
    epoch."""

    def __init__(self, images, labels, epochs):
        super().__init__(epochs.shape[-1])
        self.orders = iter(epochs)
        self.iterator_in = lambda order: mx.io.NDArrayIter(
            images[order], labels[order], self.batch_size
        )
        self.reset()
        self.provide_data = self.current.provide_data
        self.provide_label = self.current.provide_label

    def reset(self):
        order = next(self.orders, None)
        self.current = None if order is None else self.iterator_in(order.ravel())

    def next(self):
        return self.current.next()


class Losses(mx.metric.EvalMetric):
    """Keeps the loss of every step; MXNet's own metrics wait for each step to fetch its outputs."""

    def __init__(self):
        self.kept = []
        super().__init__("losses")

    def update(self, labels, preds):
        self.kept.append(preds[1].copy())  # the next step overwrites it


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
