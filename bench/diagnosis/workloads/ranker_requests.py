"""A ranking service: most requests score 32 candidates, one in fifteen scores 6,000.

Planted: rare heavy requests make the tail. Fix: keep the best 256 by a cheap score first.
The fix changes the tail: the speed-up is judged by the mean, as for any other.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "latency-tail",
    "also_right": ["step-outliers"],
    "same_fix": ["step-outliers"], "must_name": ["MatMul"], "healthy": False, "kind": "compute",
    "fix": "score at most 256 candidates: prefilter with tf.math.top_k on a cheap score",
}
from _driver import Run

run = Run("tensorflow", warm=16, steps=120)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
layers = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in ((64, 256), (256, 256), (256, 1))]


@tf.function(input_signature=[tf.TensorSpec((None, 64), tf.float32)])
def rank(candidates):
    if run.fixed:
        cheap = tf.reduce_sum(candidates[:, :8], axis=1)
        best = tf.math.top_k(cheap, tf.minimum(256, tf.shape(cheap)[0])).indices
        candidates = tf.gather(candidates, best)
    hidden = candidates
    for layer in layers[:-1]:
        hidden = tf.nn.relu(hidden @ layer)
    return tf.argsort(tf.squeeze(hidden @ layers[-1], 1))


for request in run.loop():
    count = 6000 if request % 15 == 9 else 32
    candidates = tf.constant(rng.standard_normal((count, 64), np.float32))
    with run.mark(request, "request"):
        rank(candidates).numpy()
