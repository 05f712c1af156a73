"""A language model that embeds its tokens by a one-hot matrix product.

Planted: the product with a 16,000-word one-hot matrix dominates. Fix: `tf.gather`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["MatMul"], "healthy": False, "kind": "compute",
    "fix": "tf.gather(embedding, tokens) instead of tf.one_hot(tokens, vocabulary) @ embedding",
}
from _driver import Run

run = Run("tensorflow", warm=3, steps=12)
import numpy as np
import tensorflow as tf

VOCABULARY = 16_000
tokens = tf.constant(np.random.default_rng(0).integers(0, VOCABULARY, (8, 64)), tf.int32)
embedding = tf.Variable(tf.random.normal((VOCABULARY, 96), stddev=0.02))
mixer = tf.Variable(tf.random.normal((96, 96), stddev=0.05))
head = tf.Variable(tf.random.normal((96, 200), stddev=0.05))


@tf.function
def train_step(tokens):
    with tf.GradientTape() as tape:
        if run.fixed:
            hidden = tf.gather(embedding, tokens)
        else:
            with tf.name_scope("lookup"):
                chosen = tf.reshape(tf.one_hot(tokens, VOCABULARY), (-1, VOCABULARY))
                hidden = tf.reshape(chosen @ embedding, (8, 64, 96))
        hidden = tf.nn.gelu(hidden @ mixer)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens % 200, hidden @ head))
    gradient, *others = tape.gradient(loss, (embedding, mixer, head))
    if run.fixed:
        embedding.scatter_sub(tf.IndexedSlices(0.01 * gradient.values, gradient.indices))
    else:
        embedding.assign_sub(0.01 * gradient)
    for variable, it in zip((mixer, head), others):
        variable.assign_sub(0.01 * it)
    return loss


for i in run.loop():
    with run.mark(i):
        train_step(tokens).numpy()
