"""Healthy: a two-tower recommender with large embedding tables, its clicks fetched ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
pairs = rng.integers(0, 50_000, (65_536, 2)).astype("int32")
clicks = tf.data.Dataset.from_tensor_slices(pairs).batch(1024).cache().repeat().prefetch(tf.data.AUTOTUNE)
tables = [tf.Variable(tf.random.normal((50_000, 64), stddev=0.05)) for _ in range(2)]
towers = [[tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((64, 256), (256, 128))] for _ in range(2)]
dense = [weight for tower in towers for weight in tower]


@tf.function
def train_step(pair):
    with tf.GradientTape() as tape:
        sides = []
        for table, tower, ids in zip(tables, towers, tf.unstack(pair, axis=1)):
            hidden = tf.gather(table, ids)
            sides.append(tf.nn.relu(hidden @ tower[0]) @ tower[1])
        scores = tf.matmul(sides[0], sides[1], transpose_b=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(1024), scores))
    sparse, others = tape.gradient(loss, (tables, dense))
    for table, gradient in zip(tables, sparse):
        table.scatter_sub(tf.IndexedSlices(0.05 * gradient.values, gradient.indices))
    for weight, gradient in zip(dense, others):
        weight.assign_sub(0.05 * gradient)
    return loss


batches = iter(clicks)
for i in run.loop():
    with run.mark(i):
        train_step(next(batches)).numpy()
