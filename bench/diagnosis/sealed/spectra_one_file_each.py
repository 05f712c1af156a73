"""Keras fit on infrared spectra, each in a small file of its own, as the spectrometer wrote them.

Planted: thousands of small files, opened one by one (in parallel calls). Fix: pack them into one file of
fixed-length records.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-small-files",
    "also_right": ["input-file-read", "input-bound"], "same_fix": ["input-file-read"], "must_name": ["ile"],
    "healthy": False, "kind": "input",
    "fix": "pack the spectra into one file and read it with tf.data.FixedLengthRecordDataset", "change": "pack-files",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(4)
POINTS = 400
spectra = rng.standard_normal((4096, POINTS + 1)).astype("float32")
folder = run.scratch / "spectra"
folder.mkdir()
for number, spectrum in enumerate(spectra):
    (folder / f"{number:05d}.f32").write_bytes(spectrum.tobytes())


def load(path):
    return tf.io.decode_raw(tf.io.read_file(path), tf.float32)


def split(rows):
    rows = tf.ensure_shape(rows, (None, POINTS + 1))
    return rows[:, 1:], rows[:, :1]


if run.fixed:
    packed = run.scratch / "spectra.f32"
    packed.write_bytes(b"".join(path.read_bytes() for path in sorted(folder.iterdir())))
    data = tf.data.FixedLengthRecordDataset(str(packed), 4 * (POINTS + 1)).repeat().shuffle(1024)
    data = data.batch(256).map(lambda raw: split(tf.io.decode_raw(raw, tf.float32)), tf.data.AUTOTUNE)
else:
    data = tf.data.Dataset.list_files(str(folder / "*.f32"), shuffle=True).repeat()
    data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(256).map(split, tf.data.AUTOTUNE)
data = data.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((POINTS,)),
    layers.Dense(512, activation="relu"),
    layers.Dense(256, activation="relu"),
    layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
