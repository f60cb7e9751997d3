"""Keras with a custom train_step, then train_on_batch. 12 steps."""

import keras
import numpy as np
import tensorflow as tf


class Regression(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.layer = keras.layers.Dense(1)
        self.tracker = keras.metrics.Mean(name="loss")

    def call(self, x):
        return self.layer(x)

    def train_step(self, data):
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(64, 5)).astype("float32")
y = x[:, :1] * 2
model = Regression()
model.compile("sgd", loss="mse")
print([float(each).hex() for each in model.fit(x, y, 16, epochs=2, verbose=0).history["loss"]])
for _ in range(4):
    print(float(model.train_on_batch(x, y, return_dict=True)["loss"]).hex())
