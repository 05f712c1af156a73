"""A recommender in a custom loop that saves a checkpoint of its tables every fourth step.

Planted: the loop waits for tf.train.Checkpoint.save. Fix: save every 200 steps.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers"],
    "same_fix": ["step-outliers"], "must_name": ["Save"], "healthy": False, "kind": "output",
    "fix": "if step % 200 == 0: manager.save()",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=32)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
users = tf.Variable(tf.random.normal((60_000, 64), stddev=0.05))
items = tf.Variable(tf.random.normal((40_000, 64), stddev=0.05))
who = tf.constant(rng.integers(0, 60_000, 4096), tf.int32)
what = tf.constant(rng.integers(0, 40_000, 4096), tf.int32)


@tf.function
def train_step(who, what):
    with tf.GradientTape() as tape:
        score = tf.reduce_sum(tf.gather(users, who) * tf.gather(items, what), 1)
        loss = tf.reduce_mean(tf.nn.softplus(-score))
    for table, gradient in zip((users, items), tape.gradient(loss, (users, items))):
        table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
    return loss


manager = tf.train.CheckpointManager(tf.train.Checkpoint(users=users, items=items), str(run.scratch / "ckpt"), 2)
for step in run.loop():
    with run.mark(step):
        train_step(who, what).numpy()
        if step % (200 if run.fixed else 4) == 3:
            with run.part("output"):
                manager.save()
