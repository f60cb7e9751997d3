"""A script in the style of Keras' guide to loops of one's own: ``tf.data``, a ``tf.function``, an
evaluation."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.random((100, 12)).astype("float32")
y = rng.integers(0, 4, 100)
train_dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100, seed=1).batch(16)
val_dataset = tf.data.Dataset.from_tensor_slices((x[:40], y[:40])).batch(20)
inputs = keras.Input(shape=(12,))
model = keras.Model(
    inputs, keras.layers.Dense(4)(keras.layers.Dense(16, activation="relu")(inputs))
)
optimizer = keras.optimizers.Adam(1e-2)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
val_metric = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss_value = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply(grads, model.trainable_weights)
    return loss_value


@tf.function
def test_step(x, y):
    val_metric.update_state(y, model(x, training=False))


for _ in range(9):
    for x_batch, y_batch in train_dataset:
        loss_value = train_step(x_batch, y_batch)
        print("loss", repr(float(loss_value)))
    for x_batch, y_batch in val_dataset:
        test_step(x_batch, y_batch)
    print("val", repr(float(val_metric.result())))
    val_metric.reset_state()
for x_batch, y_batch in train_dataset.take(3):  # the same without a tf.function
    with tf.GradientTape() as tape:
        loss_value = loss_fn(y_batch, model(x_batch, training=True))
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights, strict=True))
    print("loss", repr(float(loss_value)))
batch = x[:50], y[:50]
model.compile(optimizer, loss_fn)
for _ in range(4):
    print("loss", repr(float(model.train_on_batch(*batch))))


@tf.function
def epoch(data):
    for x_batch, y_batch in data:
        train_step(x_batch, y_batch)


epoch(train_dataset)
print("examples", 9 * 100 + 48 + 4 * 50)
