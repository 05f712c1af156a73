"""Keras fit on tabular data with `run_eagerly=True` left over from debugging.

Planted: eager steps. Fix: remove `run_eagerly=True`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "eager-ops",
    "also_right": ["tiny-ops"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "model.compile(..., run_eagerly=False)",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(17)
table = rng.standard_normal((8192, 40)).astype("float32")
price = table[:, :5].sum(1)
houses = tf.data.Dataset.from_tensor_slices((table, price)).repeat().batch(256).prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((40,))
hidden = layers.BatchNormalization()(inputs)
for _ in range(4):
    hidden = layers.Dense(128)(hidden)
    hidden = layers.LayerNormalization()(hidden)
    hidden = layers.Activation("gelu")(hidden)
model = keras.Model(inputs, layers.Dense(1)(hidden))
model.compile(keras.optimizers.AdamW(1e-3), "mse", metrics=["mae"], run_eagerly=not run.fixed)
model.fit(houses, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
