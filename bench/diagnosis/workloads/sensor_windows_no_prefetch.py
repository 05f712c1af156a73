"""Forecasting on sliding windows; making a batch and training on it take turns, each about half of the step.

Planted: no `prefetch` at the end of the pipeline, and tf.data's autotuning, which would add one, is off.
Fix: `prefetch(tf.data.AUTOTUNE)`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound"], "must_name": ["prefetch"], "healthy": False, "kind": "input",
    "fix": "windows.batch(64).prefetch(tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=25)
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
rng = np.random.default_rng(5)
series = np.cumsum(rng.standard_normal((200_000, 4)), axis=0).astype("float32")
LOOKBACK = 48

options = tf.data.Options()
options.autotune.enabled = False
windows = tf.data.Dataset.from_tensor_slices(series).with_options(options)
windows = windows.window(LOOKBACK + 1, shift=7, drop_remainder=True).flat_map(lambda w: w.batch(LOOKBACK + 1))
windows = windows.batch(64).repeat()
if run.fixed:
    windows = windows.prefetch(tf.data.AUTOTUNE)

sizes = (LOOKBACK * 4, 1280, 1280, 4)
layers = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in zip(sizes, sizes[1:])]


@tf.function
def train_step(window):
    past, future = tf.reshape(window[:, :-1], (-1, LOOKBACK * 4)), window[:, -1]
    with tf.GradientTape() as tape:
        hidden = past
        for weight in layers[:-1]:
            hidden = tf.nn.relu(hidden @ weight)
        loss = tf.reduce_mean(tf.square(hidden @ layers[-1] - future))
    for weight, gradient in zip(layers, tape.gradient(loss, layers)):
        weight.assign_sub(1e-6 * tf.clip_by_norm(gradient, 1.0))
    return loss


batches = iter(windows)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            window = next(batches)
        train_step(window).numpy()
