"""MXNet, style `fast`: the data stays on the device, and a step is one bound graph and one call of
the updater.

The images are converted once and kept on the device, so a batch is one `take` into the graph's
input. `Symbol.bind` gives the graph fixed arrays for weights and gradients, and the updater changes
the weights in place. MXNet's engine queues all operations; Python waits for them only at the end of
an epoch.
"""

from __future__ import annotations

import time

import mxnet as mx
import numpy as np

DEVICE = mx.gpu() if mx.context.num_gpus() else mx.cpu()


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    images = mx.nd.array(images.reshape(len(images), -1), DEVICE, "float32") / 256
    labels = mx.nd.array(labels, DEVICE, "float32")
    x = mx.sym.Variable("data")
    names = ("hidden1", "hidden2", "output")
    for units, name in zip((128, 64), names):
        x = mx.sym.Activation(
            mx.sym.FullyConnected(x, num_hidden=units, name=name), act_type="relu"
        )
    logits = mx.sym.FullyConnected(x, num_hidden=10, name=names[-1])
    label = mx.sym.Variable("label")
    loss = mx.sym.mean(-mx.sym.pick(mx.sym.log_softmax(logits), label))
    network = mx.sym.Group([mx.sym.SoftmaxOutput(logits, label), mx.sym.BlockGrad(loss)])

    parameters = {}
    for name, (kernel, bias) in zip(names, weights):
        parameters[f"{name}_weight"] = mx.nd.array(kernel.T, DEVICE)
        parameters[f"{name}_bias"] = mx.nd.array(bias, DEVICE)
    gradients = {name: mx.nd.zeros_like(array) for name, array in parameters.items()}
    size = epochs.shape[-1]
    batch = {
        "data": mx.nd.zeros((size, images.shape[1]), DEVICE),
        "label": mx.nd.zeros((size,), DEVICE),
    }
    gradient_to = {
        name: "write" if name in parameters else "null" for name in network.list_arguments()
    }
    graph = network.bind(DEVICE, {**parameters, **batch}, gradients, gradient_to)
    sgd = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, wd=1e-5, rescale_grad=1 / size)
    update = mx.optimizer.get_updater(sgd)
    indices_of_arrays = list(range(len(parameters)))

    losses = []
    for epoch, batches in enumerate(mx.nd.array(epochs, DEVICE, "int32")):
        start = time.perf_counter()
        for indices in batches:
            mx.nd.take(images, indices, out=batch["data"])
            mx.nd.take(labels, indices, out=batch["label"])
            graph.forward(is_train=True)
            graph.backward()
            update(indices_of_arrays, list(gradients.values()), list(parameters.values()))
            losses.append(graph.outputs[1].copy())  # the next step overwrites it
        mean = mx.nd.concat(*losses[-len(batches) :], dim=0).mean().asscalar()
        print(
            f"epoch {epoch + 1}: loss {mean:.4f}, "
            f"{batches.size / (time.perf_counter() - start):,.0f} samples/s"
        )
    return mx.nd.concat(*losses, dim=0).asnumpy()


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
