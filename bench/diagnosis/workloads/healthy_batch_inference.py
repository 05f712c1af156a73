"""Healthy: embedding a corpus in full batches of one size, the results written to one array."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=5, steps=30)
import numpy as np
import tensorflow as tf

pages = np.random.default_rng(6).standard_normal((64, 256, 384)).astype("float32")
corpus = tf.data.Dataset.from_tensor_slices(pages).repeat().prefetch(tf.data.AUTOTUNE)
layers = [tf.Variable(tf.random.normal((384, 384), stddev=0.05)) for _ in range(8)]


@tf.function
def embed(page):
    for layer in layers:
        page = tf.nn.gelu(page @ layer) + page
    return tf.math.l2_normalize(tf.reduce_mean(page, 0))


vectors = np.empty((64, 384), np.float32)
for step, page in zip(run.loop(), corpus):
    with run.mark(step, "inference"):
        vectors[step % 64] = embed(page).numpy()
