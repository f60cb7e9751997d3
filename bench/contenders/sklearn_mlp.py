"""scikit-learn's `MLPClassifier`, one `partial_fit` an epoch, as its guide to out-of-core learning
has it.

It has no dropout and no convolutions, so three workloads are left out. It differs from the
definition of the two others: weights and biases start from its own uniform distribution (Glorot's,
which for mlp128 is wider than the workload's), biases do not decay, and mlp128 draws a new order
for every epoch.
"""

from __future__ import annotations

import arrays
import numpy as np
import sklearn
from sklearn.neural_network import MLPClassifier
from turns import Turns

NETWORKS = {
    "mnist-mlp128": MLPClassifier(
        hidden_layer_sizes=(128, 64),
        solver="sgd",
        batch_size=100,
        learning_rate="constant",
        learning_rate_init=0.1,
        momentum=0.9,
        nesterovs_momentum=False,
        alpha=1e-5 * 100,  # it is divided by the batch size inside
        random_state=1,
    ),
    "mnist-mlp32": MLPClassifier(
        hidden_layer_sizes=(32,),
        solver="adam",
        batch_size=60_000,
        learning_rate_init=0.001,
        alpha=0.0,
        shuffle=False,
        random_state=1,
    ),
}


def main() -> None:
    turns = Turns()
    turns.versions(scikit_learn=sklearn.__version__)
    if turns.workload not in NETWORKS:
        turns.cannot("MLPClassifier has neither dropout nor convolutions")
    x_train, y_train, x_test, y_test = arrays.load(turns.folder)
    divide_by = np.float32(256 if turns.workload == "mnist-mlp128" else 255)
    x_train = x_train.reshape(len(x_train), -1) / divide_by
    x_test = x_test.reshape(len(x_test), -1) / divide_by

    model = NETWORKS[turns.workload]
    for _ in range(turns.epochs):
        model.partial_fit(x_train, y_train, classes=np.arange(10))
        turns.epoch_done()
    turns.test_accuracy(model.score(x_test, y_test))


if __name__ == "__main__":
    main()
