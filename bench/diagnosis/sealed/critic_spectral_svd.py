"""A Wasserstein critic in a custom loop; each kernel is divided by its largest singular value.

Planted: a full singular value decomposition per layer and step is most of the step. Fix: one step of power iteration.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["Svd"], "healthy": False, "kind": "compute",
    "fix": "one power iteration per layer instead of tf.linalg.svd", "change": "cheaper-op",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
SIZE = 192
real = tf.constant(rng.standard_normal((4096, SIZE)), tf.float32)
fake = tf.constant(rng.standard_normal((4096, SIZE)) * 0.8, tf.float32)
kernels = [tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.08)) for _ in range(3)]
vectors = [tf.Variable(tf.random.normal((SIZE, 1)), trainable=False) for _ in kernels]
head = tf.Variable(tf.random.normal((SIZE, 1), stddev=0.08))


def largest_singular(kernel, vector):
    if not run.fixed:
        return tf.stop_gradient(tf.linalg.svd(kernel, compute_uv=False)[0])
    left = tf.math.l2_normalize(tf.matmul(kernel, vector))
    right = tf.math.l2_normalize(tf.matmul(kernel, left, transpose_a=True))
    vector.assign(right)
    return tf.stop_gradient(tf.squeeze(tf.matmul(left, kernel @ right, transpose_a=True)))


@tf.function
def critic_step(real, fake):
    with tf.GradientTape() as tape:
        normed = [kernel / largest_singular(kernel, vector) for kernel, vector in zip(kernels, vectors)]

        def critic(x):
            for kernel in normed:
                x = tf.nn.leaky_relu(x @ kernel)
            return x @ head

        loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
    weights = [*kernels, head]
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


for step in run.loop():
    with run.mark(step):
        loss = critic_step(real, fake)
