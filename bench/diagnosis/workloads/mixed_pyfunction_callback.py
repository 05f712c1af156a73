"""Keras fit with two causes: a py_function in the pipeline (the larger), and a slow callback (the smaller).

Planted: Python in the map, then Python after each batch. Fix, of the first only: the map in TensorFlow ops.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "second": "python-overhead", "must_name": ["PyFunc"], "healthy": False,
    "kind": "input", "fix": "tf.cumsum and tf.sort in the map instead of tf.py_function",
}
import time

from _driver import Run

run = Run("tensorflow", warm=6, steps=24)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(20)
curves = rng.standard_normal((1024, 200)).astype("float32")
target = rng.standard_normal((1024, 1)).astype("float32")


def rank_curve(curve):
    values = [float(v) for v in curve.numpy()]
    running, out = 0.0, []
    for value in values:
        running = 0.9 * running + value
        out.append(running)
    return np.array(sorted(out), np.float32)


def features(curve, y):
    if run.fixed:
        return tf.sort(tf.cumsum(curve)), y
    return tf.ensure_shape(tf.py_function(rank_curve, [curve], tf.float32), (200,)), y


class Upload(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        with run.part("python"):
            time.sleep(0.004)  # a blocking call to a metrics service


ds = tf.data.Dataset.from_tensor_slices((curves, target)).repeat().map(features).batch(64)
model = keras.Sequential([keras.Input((200,)), layers.Dense(128, activation="relu"), layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=[*run.keras(), Upload()])
run.done()
