"""Keras fit on MRI volumes; random crops, flips, contrast and noise are drawn in a map, one volume at a time.

Planted: `map` without `num_parallel_calls`; the draws keep TensorFlow from parallelising it by itself.
Fix: `num_parallel_calls=tf.data.AUTOTUNE`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "volumes.map(augment_volume, num_parallel_calls=tf.data.AUTOTUNE)", "change": "parallel-map",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=24)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(3)
scans = rng.integers(0, 2000, (24, 96, 96, 28)).astype("int16")
lesion = rng.integers(0, 2, 24).astype("float32")


def augment_volume(volume, label):
    volume = tf.image.random_crop(volume, (80, 80, 24))
    volume = tf.cast(volume, tf.float32)
    volume = (volume - tf.reduce_mean(volume)) / (tf.math.reduce_std(volume) + 1e-3)
    if tf.random.uniform(()) < 0.5:
        volume = tf.reverse(volume, axis=[1])
    gamma = tf.random.uniform((), 0.7, 1.5)
    volume = tf.sign(volume) * tf.pow(tf.abs(volume), gamma)
    volume += tf.random.normal(tf.shape(volume), stddev=0.05)
    return volume, label


volumes = tf.data.Dataset.from_tensor_slices((scans, lesion)).repeat().shuffle(24)
volumes = volumes.map(augment_volume, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
volumes = volumes.batch(8).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((80, 80, 24)),
    layers.Conv2D(16, 5, strides=4, activation="relu"),
    layers.Conv2D(32, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(32, activation="relu"),
    layers.Dense(1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy")
model.fit(volumes, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
