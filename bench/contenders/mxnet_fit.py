"""MXNet as its tutorials train: a network of symbols, an `NDArrayIter`, and one call of
`Module.fit`.

Runs in the interpreter that has MXNet 1.9. It differs from the workload's definition: RMSProp takes
epsilon under the root, biases do not decay and start from 0 (in mnist-cnn too), mlp512's loss is
not clipped, and the last batch of an epoch is filled up with examples from its beginning.
"""

from __future__ import annotations

from typing import Any

import arrays
import mxnet as mx
import numpy as np
from turns import Turns


def mlp(widths: tuple[int, ...], dropout: float = 0.0) -> mx.sym.Symbol:
    x = mx.sym.flatten(mx.sym.Variable("data"))
    for width in widths:
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=width), act_type="relu")
        if dropout:
            x = mx.sym.Dropout(x, p=dropout)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10), name="softmax")


def cnn() -> mx.sym.Symbol:
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(5, 5), num_filter=10)
    x = mx.sym.Activation(
        mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2)), act_type="relu"
    )
    x = mx.sym.Dropout(mx.sym.Convolution(x, kernel=(5, 5), num_filter=20), p=0.5, axes=(2, 3))
    x = mx.sym.Activation(
        mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2)), act_type="relu"
    )
    x = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.flatten(x), num_hidden=50), act_type="relu")
    return mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Dropout(x, p=0.5), num_hidden=10), name="softmax"
    )


GLOROT = mx.init.Xavier(rnd_type="uniform", factor_type="avg", magnitude=3)
# network, initial weights, optimiser, batch
RECIPES: dict[str, tuple[Any, Any, str, dict[str, float], int]] = {
    "mnist-mlp512": (
        lambda: mlp((512, 512), dropout=0.2),
        GLOROT,
        "rmsprop",
        {"learning_rate": 0.001, "gamma1": 0.9, "epsilon": 1e-8, "wd": 0.0},
        128,
    ),
    "mnist-mlp128": (
        lambda: mlp((128, 64)),
        mx.init.Uniform(0.01),
        "sgd",
        {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-5},
        100,
    ),
    "mnist-mlp32": (
        lambda: mlp((32,)),
        GLOROT,
        "adam",
        {"learning_rate": 0.001, "wd": 0.0},
        60_000,
    ),
    "mnist-cnn": (
        cnn,
        mx.init.Xavier(rnd_type="uniform", factor_type="in", magnitude=1),
        "sgd",
        {"learning_rate": 0.01, "momentum": 0.5, "wd": 0.0},
        200,
    ),
}


def pixels(workload: str, images: np.ndarray) -> np.ndarray:
    """Convert images to the network's input, ``[n, channels, height, width]``."""
    x = images.transpose(0, 3, 1, 2).astype(np.float32) / (
        256 if workload == "mnist-mlp128" else 255
    )
    return (x - np.float32(0.1307)) / np.float32(0.3081) if workload == "mnist-cnn" else x


def main() -> None:
    turns = Turns()
    turns.versions(mxnet=mx.__version__, numpy=np.__version__)
    if turns.workload not in RECIPES:
        turns.cannot("Module.fit is written here for MNIST")
    mx.random.seed(1)
    np.random.seed(1)
    x_train, y_train, x_test, y_test = arrays.load(turns.folder)
    network, initializer, optimizer, optimizer_params, batch = RECIPES[turns.workload]

    train_iter = mx.io.NDArrayIter(
        pixels(turns.workload, x_train), y_train, batch, shuffle=batch < len(x_train)
    )
    test_iter = mx.io.NDArrayIter(pixels(turns.workload, x_test), y_test, batch_size=1000)
    model = mx.mod.Module(symbol=network(), context=mx.cpu())
    model.fit(
        train_iter,
        optimizer=optimizer,
        optimizer_params=optimizer_params,
        initializer=initializer,
        eval_metric="acc",
        num_epoch=turns.epochs,
        epoch_end_callback=lambda *_: turns.epoch_done(),
    )
    ((_, accuracy),) = model.score(test_iter, "acc")
    turns.test_accuracy(accuracy)


if __name__ == "__main__":
    main()
