"""A sentence tagger fed with unpadded batches through a tf.function without a signature. No markers.

Planted: each new sentence length is a new trace; some lengths come again, so not every step pays.
Fix: an `input_signature` with an open length.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": ["tag_step"], "healthy": False, "kind": "compile",
    "fix": "@tf.function(input_signature=[tf.TensorSpec((32, None), tf.int32), …])",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=24)
run.marked = False
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(12)
embedding = tf.Variable(tf.random.normal((4000, 64), stddev=0.05))
recurrent = tf.Variable(tf.random.normal((64, 64), stddev=0.05))
head = tf.Variable(tf.random.normal((64, 17), stddev=0.05))
variables = (embedding, recurrent, head)


def tag_step(tokens, tags):
    with tf.GradientTape() as tape:
        hidden = tf.nn.embedding_lookup(embedding, tokens)
        for _ in range(4):
            context = tf.nn.softmax(tf.matmul(hidden, hidden, transpose_b=True)) @ hidden
            hidden = tf.nn.relu(context @ recurrent) + hidden
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tags, hidden @ head))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * tf.convert_to_tensor(gradient))
    return loss


spec = tf.TensorSpec((32, None), tf.int32)
tag_step = tf.function(tag_step, input_signature=[spec, spec] if run.fixed else None)
for i in run.loop():
    # One batch in three has a length of its own; the others come from a few that were seen in warm-up.
    length = 30 + i if i % 3 == 2 else (16, 24)[i % 2]
    tokens = tf.constant(rng.integers(0, 4000, (32, length)), tf.int32)
    tags = tf.constant(rng.integers(0, 17, (32, length)), tf.int32)
    tag_step(tokens, tags).numpy()
