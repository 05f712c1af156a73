"""Click-through prediction from GZIP-compressed TFRecord files, read one after the other.

Planted: decompression and record reading in one thread, in the dataset that reads the files. Fix: read the files side
by side with a parallel `interleave`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-file-read",
    "also_right": ["input-bound"], "must_name": ["TFRecord"], "healthy": False, "kind": "input",
    "fix": "interleave(open_file, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE) over the files",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(9)
paths = [str(run.scratch / f"clicks-{shard:02}.tfrecord") for shard in range(4)]
for path in paths:
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
        for _ in range(1500):
            # Half repeats, so that it compresses as real logs do.
            row = np.repeat(rng.standard_normal(1024).astype("float32"), 2)
            writer.write(row.tobytes())



def open_file(path):
    return tf.data.TFRecordDataset(path, compression_type="GZIP")


if run.fixed:
    clicks = tf.data.Dataset.from_tensor_slices(paths)
    clicks = clicks.interleave(open_file, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
else:
    clicks = open_file(paths)
clicks = clicks.repeat().batch(256)
clicks = clicks.map(lambda rows: tf.reshape(tf.io.decode_raw(rows, tf.float32), (256, 2048)), tf.data.AUTOTUNE)
clicks = clicks.prefetch(tf.data.AUTOTUNE)

w1 = tf.Variable(tf.random.normal((2048, 64), stddev=0.02))
w2 = tf.Variable(tf.random.normal((64, 1), stddev=0.1))


@tf.function
def train_step(rows):
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(rows @ w1) @ w2
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(logits), logits))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(0.01 * gradient)
    return loss


batches = iter(clicks)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            rows = next(batches)
        train_step(rows).numpy()
