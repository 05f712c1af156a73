"""Keras train_on_batch with two examples at a time.

Planted: the batch is too small; the cost of a call dwarfs its work. Fix: 64 at a time. Speed is judged per example.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "small-batch",
    "also_right": ["tiny-ops", "python-overhead"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "batch_size = 64",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=60)
run.items = batch_size = 64 if run.fixed else 2
import numpy as np
import keras
from keras import layers

rng = np.random.default_rng(19)
x = rng.standard_normal((4096, 32)).astype("float32")
y = rng.standard_normal((4096, 1)).astype("float32")
model = keras.Sequential([keras.Input((32,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"),
                          layers.Dense(1)])
model.compile(keras.optimizers.Adam(1e-3), "mse")
for step in run.loop():
    start = step * batch_size % 4096
    with run.mark(step):
        model.train_on_batch(x[start:start + batch_size], y[start:start + batch_size])
