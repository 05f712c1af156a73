"""Earthquake detection from raw seismic traces in gzipped files of fixed-length records, read one after the other.

Planted: one thread unpacks all the bytes. Fix: read the files side by side with a parallel `interleave`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-file-read",
    "also_right": ["input-bound"], "must_name": ["FixedLengthRecord"], "healthy": False, "kind": "input",
    "fix": "interleave(open_file, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE) over the files",
}
import gzip

from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

tf.random.set_seed(61)
rng = np.random.default_rng(61)
SAMPLES, BATCH = 48_000, 32
paths = []
for station in range(4):
    path = run.scratch / f"station-{station}.bin.gz"
    noise = np.cumsum(rng.integers(-20, 21, (100, SAMPLES)), axis=1).astype("int16")
    path.write_bytes(gzip.compress(noise.tobytes(), 1))
    paths.append(str(path))


def open_file(path):
    return tf.data.FixedLengthRecordDataset(path, SAMPLES * 2, compression_type="GZIP")


if run.fixed:
    traces = tf.data.Dataset.from_tensor_slices(paths)
    traces = traces.interleave(open_file, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
else:
    traces = open_file(paths)
traces = traces.repeat().batch(BATCH)
traces = traces.map(lambda raw: tf.reshape(tf.io.decode_raw(raw, tf.int16), (BATCH, SAMPLES)), tf.data.AUTOTUNE)
traces = traces.prefetch(tf.data.AUTOTUNE)

first = tf.Variable(tf.random.normal((50, 32), stddev=0.1))
second = tf.Variable(tf.random.normal((32, 16), stddev=0.1))
head = tf.Variable(tf.random.normal((16, 2), stddev=0.1))
variables = (first, second, head)


@tf.function
def train_step(raw):
    # The network hears every sixteenth sample.
    signal = tf.cast(raw[:, ::16], tf.float32) / 1000.0
    frames = tf.reshape(signal, (BATCH, -1, 50))
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.nn.relu(frames @ first) @ second)
        logits = tf.reduce_max(hidden, axis=1) @ head
        quake = tf.cast(tf.reduce_max(tf.abs(signal), axis=1) > 2.0, tf.int32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(quake, logits))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


batches = iter(traces)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            raw = next(batches)
        train_step(raw).numpy()
