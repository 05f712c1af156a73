"""A recursive filter over a sequence, unrolled in Python inside a tf.function: thousands of tiny ops.

Planted: one multiply and one add per time step and channel. Fix: the same as one matrix product.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "tiny-ops",
    "also_right": [], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "write the filter as one product with its impulse-response matrix",
}
from _driver import Run

run = Run("tensorflow", warm=3, steps=15)
import numpy as np
import tensorflow as tf

T, CHANNELS = 96, 12
signal = tf.constant(np.random.default_rng(0).standard_normal((CHANNELS, 16, T)), tf.float32)
gain = tf.Variable(0.9)


def unrolled(signal):
    channels = []
    for channel in tf.unstack(signal):
        level, out = tf.zeros(16), []
        for sample in tf.unstack(channel, axis=1):
            level = gain * level + sample
            out.append(level)
        channels.append(tf.stack(out, 1))
    return tf.stack(channels)


def vectorised(signal):
    lag = tf.range(T, dtype=tf.float32)[None] - tf.range(T, dtype=tf.float32)[:, None]
    response = tf.where(lag >= 0, gain ** tf.maximum(lag, 0.0), 0.0)
    return tf.einsum("cbt,ts->cbs", signal, response)


@tf.function
def train_step(signal):
    with tf.GradientTape() as tape:
        smooth = vectorised(signal) if run.fixed else unrolled(signal)
        loss = tf.reduce_mean(tf.square(smooth[..., :-1] - signal[..., 1:]))
    gain.assign_sub(1e-4 * tape.gradient(loss, gain))
    return loss


for i in run.loop():
    with run.mark(i):
        train_step(signal).numpy()
