"""Medical scans; the pipeline is parallel and fetches ahead, but the preprocessing needs more CPU than there is.

Planted: the same deterministic resampling is done again in every epoch. Fix: `cache()` behind it.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-cpu-starved",
    "also_right": ["input-bound"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "scans.map(resample, tf.data.AUTOTUNE).cache()",
}
from _driver import Run

run = Run("tensorflow", warm=12, steps=20)
import numpy as np
import tensorflow as tf

scans = np.random.default_rng(8).random((96, 192, 192, 1), np.float32)


def resample(scan):
    scan = tf.image.resize(scan, (384, 384), method="bicubic")
    scan = tf.image.adjust_contrast(scan, 1.5)
    scan = tf.image.resize(scan, (64, 64), method="area")
    return tf.image.per_image_standardization(scan)


ds = tf.data.Dataset.from_tensor_slices(scans).map(resample, num_parallel_calls=tf.data.AUTOTUNE)
if run.fixed:
    ds = ds.cache()
ds = ds.repeat().batch(16).prefetch(tf.data.AUTOTUNE)

kernels = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((3, 3, 1, 16), (3, 3, 16, 16))]


@tf.function
def train_step(scan):
    with tf.GradientTape() as tape:
        hidden = scan
        for kernel in kernels:
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 2, "SAME"))
        loss = tf.reduce_mean(tf.square(hidden))
    for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
        kernel.assign_sub(0.01 * gradient)
    return loss


batches = iter(ds)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            scan = next(batches)
        train_step(scan).numpy()
