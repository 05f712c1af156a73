"""Click prediction with Keras' train_on_batch, rows cut into batches of 2,048 by tf.data. The prefetch stands
before the batching, and tf.data's autotuning, which would add one at the end, is off to bound memory.

Planted: no prefetch at the end, so the batch is put together while the model waits. Fix: move the prefetch to the end.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound"], "same_fix": ["input-bound"], "must_name": ["refetch"], "healthy": False,
    "kind": "input", "fix": "rows.batch(2048).prefetch(2) instead of a prefetch before the batch",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=30)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(5)
numbers = rng.standard_normal((60000, 24)).astype("float32")
site = rng.integers(0, 3000, 60000).astype("int32")
clicked = (rng.random(60000) < 0.2).astype("float32")

options = tf.data.Options()
options.autotune.enabled = False

rows = tf.data.Dataset.from_tensor_slices((numbers, site, clicked)).shuffle(8192).repeat()
if run.fixed:
    rows = rows.batch(2048, drop_remainder=True).prefetch(2)
else:
    rows = rows.prefetch(2).batch(2048, drop_remainder=True)
rows = rows.with_options(options)

dense_in, site_in = keras.Input((24,)), keras.Input((), dtype="int32")
x = layers.Concatenate()([dense_in, layers.Embedding(3000, 16)(site_in)])
for width in (256, 192, 128):
    x = layers.Dense(width, activation="relu")(x)
model = keras.Model([dense_in, site_in], layers.Dense(1, activation="sigmoid")(x))
model.compile(keras.optimizers.SGD(0.05), "binary_crossentropy")

batches = iter(rows)
for step in run.loop():
    with run.mark(step):
        with run.part("input"):
            dense, where, target = next(batches)
        model.train_on_batch([dense, where], target)
