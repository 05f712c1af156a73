"""Radar returns from six ZLIB-compressed TFRecord files, under Keras fit.

Planted: `tf.data.TFRecordDataset` opens one file after the other and unpacks in one thread. Fix: `num_parallel_reads`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-file-read",
    "also_right": ["input-bound"], "same_fix": ["input-bound"], "must_name": ["TFRecord"], "healthy": False,
    "kind": "input",
    "fix": "tf.data.TFRecordDataset(files, compression_type=\"ZLIB\", num_parallel_reads=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=30)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(8)
files = []
for part in range(6):
    files.append(str(run.scratch / f"radar-{part:02d}.tfrecord"))
    with tf.io.TFRecordWriter(files[-1], tf.io.TFRecordOptions(compression_type="ZLIB", compression_level=1)) as writer:
        for _ in range(160):
            sweep = np.round(rng.standard_normal((64, 512)) * 20).astype("int8")
            writer.write(sweep.tobytes() + np.int8(rng.integers(0, 4)).tobytes())


def parse(records):
    values = tf.io.decode_raw(records, tf.int8)
    sweeps = tf.reshape(values[:, :-1], (-1, 64, 512))[:, :, ::8]
    return tf.cast(sweeps, tf.float32) / 20.0, tf.cast(values[:, -1], tf.int32)


reads = tf.data.AUTOTUNE if run.fixed else None
sweeps = tf.data.TFRecordDataset(files, compression_type="ZLIB", num_parallel_reads=reads).repeat()
sweeps = sweeps.batch(64).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((64, 64)),
    layers.AveragePooling1D(8),
    layers.Conv1D(16, 3, activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(4),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(sweeps, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
