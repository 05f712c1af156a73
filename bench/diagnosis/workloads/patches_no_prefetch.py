"""Keras fit on patches cut out of large slides with `unbatch`; no prefetch, tf.data's autotuning off.

Planted: cutting the next batch and training on this one take turns. Fix: `prefetch(2)`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound", "input-serial-map"], "must_name": ["prefetch"], "healthy": False, "kind": "compute",
    "fix": "patches.batch(32).prefetch(2)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

# One core for the ops, so that the other is free to cut patches.
tf.config.threading.set_intra_op_parallelism_threads(1)
slides = np.random.default_rng(22).random((4, 512, 512, 3), np.float32)
options = tf.data.Options()
options.autotune.enabled = False


def cut(slide):
    patches = tf.image.extract_patches(slide[None], (1, 32, 32, 1), (1, 16, 16, 1), (1, 1, 1, 1), "VALID")
    return tf.reshape(patches, (-1, 32, 32, 3))


patches = tf.data.Dataset.from_tensor_slices(slides).with_options(options).repeat().map(cut).unbatch()
patches = patches.map(lambda patch: (patch, patch)).batch(32)
if run.fixed:
    patches = patches.prefetch(2)
model = keras.Sequential([
    keras.Input((32, 32, 3)),
    layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
    layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu"),
    layers.Conv2D(3, 3, padding="same"),
])
model.compile("adam", "mse")
model.fit(patches, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
