"""Keras fit on flower pictures; the colour jitter runs in a map one picture at a time, somewhat slower than the model.

Planted: `map` without `num_parallel_calls`, with a prefetch behind it. The model is busy for more than half of the
step, so the wait is mild. Fix: `num_parallel_calls=tf.data.AUTOTUNE`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "must_name": ["Map"], "healthy": False, "kind": "compute",
    "fix": "flowers.map(jitter, num_parallel_calls=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=30)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(21)
rng = np.random.default_rng(21)
pictures = rng.integers(0, 255, (128, 96, 96, 3), dtype=np.uint8)
species = rng.integers(0, 17, 128).astype("int32")


def jitter(picture, label):
    picture = tf.image.convert_image_dtype(picture, tf.float32)
    picture = tf.image.random_hue(picture, 0.1)
    picture = tf.image.random_saturation(picture, 0.7, 1.3)
    picture = tf.image.random_contrast(picture, 0.8, 1.2)
    return tf.image.random_crop(picture, (80, 80, 3)), label


flowers = tf.data.Dataset.from_tensor_slices((pictures, species)).shuffle(128).repeat()
flowers = flowers.map(jitter, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
flowers = flowers.batch(32).prefetch(2)

model = keras.Sequential([
    keras.Input((80, 80, 3)),
    layers.Conv2D(16, 3, strides=2, activation="relu"),
    layers.SeparableConv2D(32, 3, strides=2, activation="relu"),
    layers.SeparableConv2D(64, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(17, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(flowers, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
