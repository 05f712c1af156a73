"""A dilated convolution network for audio whose learning rate is halved in stairs and passed as a Python float.

Planted: the tf.function is traced again whenever the rate changes, every fourth step. Fix: pass a tensor.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": ["fit_batch"], "healthy": False, "kind": "compile",
    "fix": "fit_batch(wave, tf.constant(rate))",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=24)
import numpy as np
import tensorflow as tf

tf.random.set_seed(101)
wave = tf.constant(np.random.default_rng(101).standard_normal((8, 512, 1)), tf.float32)
CHANNELS = 16
enter = tf.Variable(tf.random.normal((1, 1, CHANNELS), stddev=0.3))
blocks = [[tf.Variable(tf.random.normal((2, CHANNELS, CHANNELS), stddev=0.15)) for _ in range(2)] for _ in range(5)]
leave = tf.Variable(tf.random.normal((1, CHANNELS, 1), stddev=0.2))
variables = [enter, *(kernel for block in blocks for kernel in block), leave]


@tf.function
def fit_batch(wave, rate):
    with tf.GradientTape() as tape:
        hidden = tf.nn.conv1d(wave[:, :-1], enter, 1, "VALID")
        for depth, (content, gate) in enumerate(blocks):
            past = tf.pad(hidden, ((0, 0), (2**depth, 0), (0, 0)))
            signal = tf.tanh(tf.nn.conv1d(past, content, 1, "VALID", dilations=2**depth))
            hidden += signal * tf.sigmoid(tf.nn.conv1d(past, gate, 1, "VALID", dilations=2**depth))
        loss = tf.reduce_mean(tf.square(tf.nn.conv1d(hidden, leave, 1, "VALID") - wave[:, 1:]))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(rate * gradient)
    return loss


for step in run.loop():
    rate = 0.02 * 0.5 ** (step // 4)
    with run.mark(step):
        fit_batch(wave, tf.constant(rate) if run.fixed else rate).numpy()
