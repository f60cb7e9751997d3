"""A model is compiled and trained twice, as for fine-tuning; then comes a new one."""

import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
y = x.sum(1, keepdims=True)


def build():
    return keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])


model = build()
for rate in (0.1, 0.01):
    model.compile(keras.optimizers.SGD(rate), "mse")
    model.fit(x, y, batch_size=16, epochs=3, verbose=0)
model = build()
model.compile(keras.optimizers.SGD(0.1), "mse")
model.fit(x, y, batch_size=16, epochs=2, verbose=0)
