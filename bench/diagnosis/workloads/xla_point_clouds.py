"""Point clouds of any size through a TensorFlow step with jit_compile=True.

Planted: XLA compiles again for each number of points. Fix: pad to a multiple of 1,024 with a mask.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "recompilation",
    "also_right": ["retracing"], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "pad the clouds to one size and mask the padding",
}
from _driver import Run

run = Run("tensorflow", warm=3, steps=14)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(14)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((3, 64), (64, 128), (128, 10))]


@tf.function(jit_compile=True, reduce_retracing=True)
def train_step(points, mask):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.nn.relu(points @ weights[0]) @ weights[1])
        pooled = tf.reduce_max(hidden - 1e9 * (1 - mask)[..., None], axis=1)
        loss = tf.reduce_mean(tf.square(pooled @ weights[2]))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


for i in run.loop():
    count = 700 + 13 * i
    size = 1024 * -(-count // 1024) if run.fixed else count
    points = np.zeros((8, size, 3), np.float32)
    points[:, :count] = rng.standard_normal((8, count, 3))
    mask = np.repeat((np.arange(size) < count).astype("float32")[None], 8, 0)
    with run.mark(i):
        train_step(tf.constant(points), tf.constant(mask)).numpy()
