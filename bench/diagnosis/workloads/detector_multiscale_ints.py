"""Multi-scale training of a small detector, YOLO style: every few steps another image size is drawn and handed to the
tf.function as a Python int. A TensorFlow loop without markers.

Planted: each new int traces `train_step` again. Fix: hand the size over as a tensor.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "train_step(images, boxes, tf.constant(size))",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=24)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(9)
images = tf.constant(rng.random((8, 128, 128, 3)), tf.float32)
boxes = tf.constant(rng.random((8, 4)), tf.float32)
kernels = [tf.Variable(tf.random.normal((3, 3, a, b), stddev=0.1)) for a, b in ((3, 8), (8, 16), (16, 32), (32, 32))]
head = tf.Variable(tf.random.normal((32, 4), stddev=0.1))
weights = kernels + [head]
moments = [tf.Variable(tf.zeros_like(weight)) for weight in weights]


@tf.function
def train_step(images, boxes, size):
    with tf.GradientTape() as tape:
        x = tf.image.resize(images, (size, size))
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME"))
        loss = tf.reduce_mean(tf.abs(tf.reduce_mean(x, (1, 2)) @ head - boxes))
    gradients = tape.gradient(loss, weights)
    for weight, moment, gradient in zip(weights, moments, gradients):
        moment.assign(0.9 * moment + gradient)
        weight.assign_sub(0.01 * moment)
    return loss


sizes = rng.permutation(np.arange(64, 160, 4))
for step in run.loop():
    # A size is kept for two steps.
    size = int(sizes[step // 2])
    loss = train_step(images, boxes, tf.constant(size) if run.fixed else size)
    if step % 10 == 0:
        print(step, float(loss))
