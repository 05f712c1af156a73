"""Healthy: a small text classifier with attention under Keras fit, its tokens in memory, shuffled, batched and fetched
ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=22)
import numpy as np
import tensorflow as tf
import keras
from keras import layers, ops

rng = np.random.default_rng(0)
tokens = rng.integers(0, 2000, (2048, 64)).astype("int32")
labels = rng.integers(0, 2, 2048).astype("float32")
data = tf.data.Dataset.from_tensor_slices((tokens, labels)).cache().shuffle(2048).repeat()
data = data.batch(64, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
inputs = keras.Input((64,), dtype="int32")
x = layers.Embedding(2000, 96)(inputs) + layers.Embedding(64, 96)(ops.arange(64))
x = layers.LayerNormalization()(x + layers.MultiHeadAttention(3, 32)(x, x))
x = layers.LayerNormalization()(x + layers.Dense(96)(layers.Dense(384, activation="relu")(x)))
outputs = layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling1D()(x))
model = keras.Model(inputs, outputs)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
