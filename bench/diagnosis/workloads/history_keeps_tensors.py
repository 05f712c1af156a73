"""Representation learning in a custom loop that keeps each step's embeddings "for the plot".

Planted: a list holds on to 24 MB of tensors more in each step. Fix: keep a small sample.
The fix saves memory; whether it saves time depends on the machine, so the speed-up is not judged.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "memory-leak",
    "also_right": ["memory-pressure"], "must_name": [], "healthy": False, "kind": "compute", "speedup": False,
    "fix": "history.append(embedding[:16].numpy())",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=30)
import numpy as np
import tensorflow as tf

views = tf.constant(np.random.default_rng(0).standard_normal((12_000, 64)), tf.float32)
w1 = tf.Variable(tf.random.normal((64, 128), stddev=0.1))
w2 = tf.Variable(tf.random.normal((128, 512), stddev=0.1))


@tf.function
def train_step(views):
    with tf.GradientTape() as tape:
        embedding = tf.nn.relu(views @ w1) @ w2
        loss = tf.reduce_mean(tf.square(embedding - 1.0))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(1e-3 * gradient)
    return loss, embedding


history = []
for i in run.loop():
    with run.mark(i):
        loss, embedding = train_step(views)
        loss.numpy()
        history.append(embedding[:16].numpy() if run.fixed else embedding)
