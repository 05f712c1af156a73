"""Song embeddings from playlists, word2vec style, in a GradientTape loop. A batch touches about 3,000 of 150,000 songs,
but Keras' Adam updates its moments and the table for all of them.

Planted: dense Adam on a large table. Fix: plain SGD with sparse rows for the table, Adam for the rest.
"""
TRUTH = {
    "change": "sparse-update",
    "framework": "tensorflow", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "table.scatter_sub(IndexedSlices) for the embedding; Adam for the dense weights only",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=25)
import numpy as np
import tensorflow as tf
import keras

SONGS, WIDTH = 150_000, 48
rng = np.random.default_rng(0)
table = tf.Variable(rng.standard_normal((SONGS, WIDTH)).astype("float32") * 0.05, name="songs")
mix = tf.Variable(rng.standard_normal((WIDTH, WIDTH)).astype("float32") * 0.1, name="mix")
dense_adam = keras.optimizers.Adam(1e-3)
dense_adam.build([mix] if run.fixed else [table, mix])
pairs = rng.integers(0, SONGS, (40000, 2)).astype("int32")
data = tf.data.Dataset.from_tensor_slices(pairs).shuffle(4096).repeat().batch(512).prefetch(tf.data.AUTOTUNE)


@tf.function
def train_step(pair):
    other = tf.random.uniform((tf.shape(pair)[0], 5), 0, SONGS, tf.int32)
    with tf.GradientTape() as tape:
        vectors = tf.gather(table, tf.concat([pair, other], 1))
        centre = vectors[:, 0] @ mix
        scores = tf.einsum("bd,bkd->bk", centre, vectors[:, 1:])
        goal = tf.concat([tf.ones((tf.shape(pair)[0], 1)), tf.zeros(tf.shape(other))], 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(goal, scores))
    g_table, g_mix = tape.gradient(loss, [table, mix])
    if run.fixed:
        table.scatter_sub(tf.IndexedSlices(0.05 * g_table.values, g_table.indices))
        dense_adam.apply([g_mix], [mix])
    else:
        dense_adam.apply([g_table, g_mix], [table, mix])
    return loss


batches = iter(data)
for step in run.loop():
    with run.mark(step):
        loss = train_step(next(batches))
        if step % 10 == 0:
            float(loss)
