"""Insurance claims, Kaggle style: each of 96 categorical columns has its own small embedding, under Keras fit.

Planted: hundreds of tiny lookups, each with its own gradient and update. Fix: one table with an offset per column.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "tiny-ops",
    "also_right": ["small-batch"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "one Embedding(96 * 12, 4) fed with columns + 12 * arange(96) instead of 96 embeddings",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=30)
import numpy as np
import tensorflow as tf
import keras
from keras import layers, ops

COLUMNS, LEVELS, WIDTH = 96, 12, 4
rng = np.random.default_rng(0)
claims = rng.integers(0, LEVELS, (8192, COLUMNS)).astype("int32")
cost = rng.standard_normal((8192, 1)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((claims, cost)).cache().shuffle(8192).repeat().batch(128)
data = data.prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((COLUMNS,), dtype="int32")
if run.fixed:
    offsets = np.arange(COLUMNS, dtype="int32") * LEVELS
    x = layers.Flatten()(layers.Embedding(COLUMNS * LEVELS, WIDTH)(inputs + offsets))
else:
    x = layers.Concatenate()([layers.Embedding(LEVELS, WIDTH)(inputs[:, n]) for n in range(COLUMNS)])
x = layers.Dense(64, activation="relu")(x)
model = keras.Model(inputs, layers.Dense(1)(x))
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mae")
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
