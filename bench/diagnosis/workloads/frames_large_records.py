"""Video clips of two megabytes each in TFRecord files; a step reads 32 MB through one reader.

Planted: one thread reads and checks all the bytes. Fix: read the files side by side with a parallel `interleave`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-file-read",
    "also_right": ["input-bound"], "must_name": ["TFRecord"], "healthy": False, "kind": "input",
    "fix": "interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=tf.data.AUTOTUNE) over the files",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=16)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(10)
FRAMES, PIXELS = 128, 128 * 128
paths = [str(run.scratch / f"clips-{shard}.tfrecord") for shard in range(2)]
for path in paths:
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(32):
            writer.write(rng.integers(0, 255, FRAMES * PIXELS, dtype=np.uint8).tobytes())


def first_frames(record):
    return tf.cast(tf.io.decode_raw(tf.strings.substr(record, 0, 4 * PIXELS), tf.uint8), tf.float32) / 255.0


clips = tf.data.TFRecordDataset(paths)
if run.fixed:
    clips = tf.data.Dataset.from_tensor_slices(paths).interleave(tf.data.TFRecordDataset, cycle_length=2,
                                                                 num_parallel_calls=tf.data.AUTOTUNE)
clips = clips.repeat().map(first_frames, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)
w1 = tf.Variable(tf.random.normal((4 * PIXELS, 8), stddev=0.01))
w2 = tf.Variable(tf.random.normal((8, 8), stddev=0.1))


@tf.function
def train_step(clip):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.reshape(clip, (16, 4 * PIXELS)) @ w1) @ w2))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(1e-3 * gradient)
    return loss


batches = iter(clips)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            clip = next(batches)
        train_step(clip).numpy()
