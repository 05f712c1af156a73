"""Tide forecasting under Keras fit; the NumPy data are float64, and to make an error message go away the whole model was
set to float64.

Planted: every product in double precision. Fix: float32.
"""
TRUTH = {
    "change": "float32",
    "framework": "tensorflow", "first_finding": "compute-bound",
    "also_right": ["dominant-op"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "keras.config.set_floatx(\"float32\") and float32 data",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

dtype = "float32" if run.fixed else "float64"
keras.config.set_floatx(dtype)
rng = np.random.default_rng(16)
series = rng.standard_normal((1024, 168, 8)).astype(dtype)
target = rng.standard_normal((1024, 24)).astype(dtype)
data = tf.data.Dataset.from_tensor_slices((series, target)).cache().shuffle(1024).repeat()
data = data.batch(48, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((168, 8)),
    layers.Dense(128, activation="relu"),
    layers.Dense(128, activation="relu"),
    layers.AveragePooling1D(2),
    layers.Flatten(),
    layers.Dense(256, activation="relu"),
    layers.Dense(24),
])
model.compile(keras.optimizers.SGD(0.01), "mse")
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
