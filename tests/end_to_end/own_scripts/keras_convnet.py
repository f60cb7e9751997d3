"""A script in the style of Keras' first example: a convolutional network, ``fit`` with validation,
``evaluate``."""

import os
import sys

import keras
import numpy as np
from keras import layers

at_once = int(sys.argv[1]) if len(sys.argv) > 1 else 1
keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.random((330, 8, 8, 1)).astype("float32")
y = rng.integers(0, 10, 330)
y = keras.utils.to_categorical(y, 10)
model = keras.Sequential(
    [
        keras.Input(shape=(8, 8, 1)),
        layers.Conv2D(8, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ]
)
more = {} if keras.backend.backend() == "torch" else {"steps_per_execution": at_once}
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"], **more)
history = model.fit(x, y, batch_size=20, epochs=2, validation_split=0.1, verbose=0)
for name, values in history.history.items():
    print(name, *map(repr, values))
print("test", *map(repr, model.evaluate(x[:50], y[:50], verbose=0)))
print(
    "weights", repr(float(sum(np.abs(each).sum(dtype="float64") for each in model.get_weights())))
)
if os.environ.get("SAVE"):
    model.save(os.environ["SAVE"])
