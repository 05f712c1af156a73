"""Attention over long documents with every score matrix of every layer kept for the backward pass.

Planted: several hundred megabytes of activations. Fix: `tf.recompute_grad` around each layer.
The fix saves memory and costs time, so the speed-up is not judged.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "memory-pressure",
    "also_right": ["compute-bound", "dominant-op"], "must_name": [], "healthy": False, "kind": "compute",
    "speedup": False, "fix": "tf.recompute_grad(layer)",
}
from _driver import Run

run = Run("tensorflow", warm=2, steps=6)
import numpy as np
import tensorflow as tf

documents = tf.constant(np.random.default_rng(0).standard_normal((4, 1024, 32)), tf.float32)
weights = [tf.Variable(tf.random.normal((32, 32), stddev=0.1)) for _ in range(8)]


def attend(hidden, weight):
    scores = tf.matmul(hidden @ weight, hidden, transpose_b=True) / 6.0
    return hidden + tf.nn.dropout(tf.nn.softmax(scores), 0.1) @ hidden


@tf.function
def train_step(documents):
    with tf.GradientTape() as tape:
        hidden = documents
        for weight in weights:
            layer = lambda h, w=weight: attend(h, w)
            hidden = (tf.recompute_grad(layer) if run.fixed else layer)(hidden)
        loss = tf.reduce_mean(tf.square(hidden))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


for i in run.loop():
    with run.mark(i):
        train_step(documents).numpy()
