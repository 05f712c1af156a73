"""Meta-learning: for each task the step is wrapped in a fresh tf.function.

Planted: a tf.function made inside the loop never finds its old trace. Fix: make it once, outside.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": ["adapt"], "healthy": False, "kind": "compile",
    "fix": "move @tf.function out of the loop",
}
from _driver import Run

run = Run("tensorflow", warm=3, steps=14)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(13)
slow = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((20, 400), (400, 400), (400, 5))]


def adapt(support, answer):
    fast = [tf.convert_to_tensor(weight) for weight in slow]
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(fast)
            hidden = tf.nn.tanh(tf.nn.tanh(support @ fast[0]) @ fast[1]) @ fast[2]
            loss = tf.reduce_mean(tf.square(hidden - answer))
        fast = [weight - 0.1 * gradient for weight, gradient in zip(fast, tape.gradient(loss, fast))]
    for weight, moved in zip(slow, fast):
        weight.assign_add(0.05 * (moved - weight))
    return loss


adapt_once = tf.function(adapt)
for task in run.loop():
    with run.mark(task, "task"):
        support = tf.constant(rng.standard_normal((256, 20)), tf.float32)
        answer = tf.constant(rng.standard_normal((256, 5)), tf.float32)
        step = adapt_once if run.fixed else tf.function(adapt)
        step(support, answer).numpy()
