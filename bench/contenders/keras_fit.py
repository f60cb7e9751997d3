"""Keras on TensorFlow as its guides train: a `Sequential` model, `compile`, and one call of `fit`.

MNIST comes from NumPy arrays, as in "Simple MNIST convnet"; CIFAR-10 from a `tf.data` pipeline of
`tf.image` functions, as TensorFlow's guide to augmentation has it.

It differs from the workload's definition: the optimisers are Keras' own (RMSprop takes epsilon
under the root), mlp128 draws a new order for every epoch, and the moving average of cifar10-cnn has
a constant decay, since Keras has no other. It is 0.9 here: with 0.9999 a run this short would be
tested with its first weights.
"""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import arrays
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from keras.initializers import Constant, RandomUniform, TruncatedNormal, VarianceScaling
from keras.regularizers import L2
from turns import Turns


class TakesTurns(keras.callbacks.Callback):
    """Each epoch of `fit` is an epoch of the turns."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self.turns = turns

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002
        self.turns.epoch_done()


def mlp32() -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def mlp128() -> keras.Sequential:
    small = RandomUniform(-0.01, 0.01)
    # Keras takes the square whole
    decay = {"kernel_regularizer": L2(0.5e-5), "bias_regularizer": L2(0.5e-5)}
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(128, activation="relu", kernel_initializer=small, **decay),
            layers.Dense(64, activation="relu", kernel_initializer=small, **decay),
            layers.Dense(10, activation="softmax", kernel_initializer=small, **decay),
        ]
    )


def mlp512() -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10, activation="softmax"),
        ]
    )


def cnn() -> keras.Sequential:
    def fan_in(inputs: int) -> dict[str, keras.initializers.Initializer]:
        half_width = inputs**-0.5
        return {
            "kernel_initializer": VarianceScaling(1 / 3, mode="fan_in", distribution="uniform"),
            "bias_initializer": RandomUniform(-half_width, half_width),
        }

    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(10, 5, **fan_in(25)),
            layers.MaxPooling2D(2),
            layers.ReLU(),
            layers.Conv2D(20, 5, **fan_in(250)),
            layers.SpatialDropout2D(0.5),
            layers.MaxPooling2D(2),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(50, activation="relu", **fan_in(320)),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax", **fan_in(50)),
        ]
    )


class LocalResponseNormalization(layers.Layer):
    """The norm of the tutorial, which Keras itself does not have."""

    def call(self, images: tf.Tensor) -> tf.Tensor:
        return tf.nn.local_response_normalization(
            images, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75
        )


def cifar_cnn() -> keras.Sequential:
    def around(sd: float, bias: float) -> dict[str, keras.initializers.Initializer]:
        return {
            "kernel_initializer": TruncatedNormal(stddev=sd),
            "bias_initializer": Constant(bias),
        }

    return keras.Sequential(
        [
            keras.Input((24, 24, 3)),
            layers.Conv2D(64, 5, padding="same", activation="relu", **around(0.05, 0)),
            layers.MaxPooling2D(3, strides=2, padding="same"),
            LocalResponseNormalization(),
            layers.Conv2D(64, 5, padding="same", activation="relu", **around(0.05, 0.1)),
            LocalResponseNormalization(),
            layers.MaxPooling2D(3, strides=2, padding="same"),
            layers.Flatten(),
            layers.Dense(384, activation="relu", kernel_regularizer=L2(0.002), **around(0.04, 0.1)),
            layers.Dense(192, activation="relu", kernel_regularizer=L2(0.002), **around(0.04, 0.1)),
            layers.Dense(10, activation="softmax", **around(1 / 192, 0)),
        ]
    )


def distorted(images: np.ndarray, labels: np.ndarray) -> tf.data.Dataset:
    def distort(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.image.random_crop(tf.cast(image, tf.float32), (24, 24, 3))
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_brightness(image, max_delta=63)
        image = tf.image.random_contrast(image, lower=0.2, upper=1.8)
        return tf.image.per_image_standardization(image), label

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    dataset = dataset.map(distort, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(128, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def pixels(workload: str, images: np.ndarray) -> np.ndarray:
    """Convert images to the network's input, without random parts."""
    if workload == "cifar10-cnn":
        return tf.image.per_image_standardization(images[:, 4:28, 4:28].astype("float32")).numpy()
    x = images.astype("float32") / (256 if workload == "mnist-mlp128" else 255)
    return (x - 0.1307) / 0.3081 if workload == "mnist-cnn" else x


NETWORKS = {
    "mnist-mlp32": mlp32,
    "mnist-mlp128": mlp128,
    "mnist-mlp512": mlp512,
    "mnist-cnn": cnn,
    "cifar10-cnn": cifar_cnn,
}
BATCHES = {"mnist-mlp128": 100, "mnist-mlp512": 128, "mnist-cnn": 200}


def optimizer_for(workload: str) -> keras.optimizers.Optimizer:
    if workload == "mnist-mlp512":
        return keras.optimizers.RMSprop(learning_rate=0.001, rho=0.9, epsilon=1e-8)
    if workload == "mnist-mlp128":
        return keras.optimizers.SGD(learning_rate=0.1, momentum=0.9)
    if workload == "mnist-mlp32":
        return keras.optimizers.Adam(learning_rate=0.001, epsilon=1e-8)
    if workload == "mnist-cnn":
        return keras.optimizers.SGD(learning_rate=0.01, momentum=0.5)
    return keras.optimizers.SGD(learning_rate=0.1, use_ema=True, ema_momentum=0.9)


def main() -> None:
    turns = Turns()
    turns.versions(keras=keras.__version__, tensorflow=tf.__version__)
    keras.utils.set_random_seed(1)
    x_train, y_train, x_test, y_test = arrays.load(turns.folder)

    model = NETWORKS[turns.workload]()
    model.compile(
        optimizer=optimizer_for(turns.workload),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    if turns.workload == "cifar10-cnn":
        data = {"x": distorted(x_train, y_train)}
    elif turns.workload == "mnist-mlp32":
        # One batch is the whole training set. From arrays, `fit` would copy it in every step, which
        # takes twice as long.
        data = {"x": tf.data.Dataset.from_tensors((pixels(turns.workload, x_train), y_train))}
    else:
        data = {
            "x": pixels(turns.workload, x_train),
            "y": y_train,
            "batch_size": BATCHES[turns.workload],
        }
    model.fit(**data, epochs=turns.epochs, verbose=2, callbacks=[TakesTurns(turns)])
    _, accuracy = model.evaluate(pixels(turns.workload, x_test), y_test, batch_size=1000, verbose=0)
    turns.test_accuracy(accuracy)


if __name__ == "__main__":
    main()
