"""Keras fit with validation, callbacks and a saved model. 16 steps."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(128, 10)).astype("float32")
y = (x.sum(1) > 0).astype("float32")
model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
history = model.fit(
    x,
    y,
    batch_size=16,
    epochs=2,
    validation_split=0.0,
    validation_data=(x[:32], y[:32]),
    callbacks=[keras.callbacks.ReduceLROnPlateau()],
    verbose=0,
)
print({name: [float(each).hex() for each in values] for name, values in history.history.items()})
print(float(model.predict(x[:4], verbose=0).sum()).hex())
