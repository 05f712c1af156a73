"""Keras fit on house prices read by CsvDataset; parsing the next rows and training on these take turns.

Planted: no `prefetch` at the end of the pipeline, and tf.data's autotuning, which would add one, is off.
Fix: `prefetch(tf.data.AUTOTUNE)`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound"], "must_name": ["prefetch"], "healthy": False, "kind": "input",
    "fix": "rows.batch(256).map(columns).prefetch(tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

# One core for the ops, so that the other is free to parse.
tf.config.threading.set_intra_op_parallelism_threads(1)
rng = np.random.default_rng(22)
path = run.scratch / "prices.csv"
np.savetxt(path, rng.standard_normal((8192, 24)), fmt="%.4f", delimiter=",")

options = tf.data.Options()
options.autotune.enabled = False
rows = tf.data.experimental.CsvDataset([str(path)], [tf.float32] * 24).with_options(options).repeat()
prices = rows.batch(256).map(lambda *columns: (tf.stack(columns[:-1], 1), columns[-1]))
if run.fixed:
    prices = prices.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([keras.Input((23,)), layers.Dense(320, activation="relu"),
                          layers.Dense(320, activation="relu"), layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-3), "mse")
model.fit(prices, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
