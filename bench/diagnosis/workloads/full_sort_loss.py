"""Hard-example mining in a per-pixel classifier that sorts all per-pixel losses to keep the worst 64. No markers.

Planted: one op, the full sort (TopKV2), is most of the step. Fix: the worst pixel of each block instead.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["TopK"], "healthy": False, "kind": "compute",
    "fix": "take the maximum per block (tf.reduce_max) instead of sorting every pixel",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=15)
run.marked = False
import numpy as np
import tensorflow as tf

image = tf.constant(np.random.default_rng(1).random((8, 160, 160, 3)), tf.float32)
mask = tf.constant(np.random.default_rng(2).integers(0, 2, (8, 160, 160, 1)), tf.float32)
kernels = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((1, 1, 3, 8), (1, 1, 8, 1))]


@tf.function
def segment_step(image, mask):
    with tf.GradientTape() as tape:
        logits = tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(image, kernels[0], 1, "SAME")), kernels[1], 1, "SAME")
        losses = tf.reshape(tf.nn.sigmoid_cross_entropy_with_logits(mask, logits), (-1,))
        if run.fixed:
            worst = tf.reduce_max(tf.reshape(losses, (64, -1)), axis=1)
        else:
            worst = tf.sort(losses, direction="DESCENDING")[:64]
        loss = tf.reduce_mean(worst)
    for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
        kernel.assign_sub(0.01 * gradient)
    return loss


for i in run.loop():
    segment_step(image, mask).numpy()
