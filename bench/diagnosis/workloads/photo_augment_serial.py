"""Keras fit on photos; decoding, resizing and random augmentation run in a map one element at a time.

Planted: `map` without `num_parallel_calls`. The augmentation draws random numbers, so TensorFlow does not
parallelise it by itself. Fix: `num_parallel_calls=tf.data.AUTOTUNE`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(7)
photos = [tf.io.encode_jpeg(rng.integers(0, 255, (160, 200, 3), dtype=np.uint8)).numpy() for _ in range(64)]
labels = rng.integers(0, 10, 64).astype("int32")


def augment(jpeg, label):
    image = tf.image.decode_jpeg(jpeg, channels=3)
    image = tf.image.resize(image, (112, 112), method="bicubic")
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.2)
    image = tf.image.random_crop(image, (64, 64, 3))
    return image / 255.0, label


photo_ds = tf.data.Dataset.from_tensor_slices((photos, labels)).repeat().shuffle(64)
photo_ds = photo_ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
photo_ds = photo_ds.batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((64, 64, 3)),
    layers.Conv2D(8, 3, strides=2, activation="relu"),
    layers.Conv2D(16, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(10),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(photo_ds, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
