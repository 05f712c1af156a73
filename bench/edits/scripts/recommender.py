"""A recommender in a loop of its own that saves its tables often."""
import tempfile
import time

import numpy as np
import tensorflow as tf

STEPS, WARM = 208, 8
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


checkpoint = tf.train.Checkpoint(users=users, items=items)
manager = tf.train.CheckpointManager(checkpoint, tempfile.mkdtemp(), max_to_keep=2)
for step in range(STEPS):
    if step == WARM:
        began = time.perf_counter()
    loss = train_step(who, what).numpy()
    if step % 4 == 0:
        manager.save()
print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")
