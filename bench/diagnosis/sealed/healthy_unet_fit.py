"""Healthy: a small U-Net under Keras fit; the decoded tiles are cached, augmented in parallel and fetched ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=5, steps=16)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(0)
tiles = rng.integers(0, 255, (96, 64, 64, 3), dtype=np.uint8)
masks = rng.integers(0, 2, (96, 64, 64, 1), dtype=np.uint8)


def flip(tile, mask):
    both = tf.image.random_flip_left_right(tf.concat([tile, mask], -1))
    return tf.cast(both[..., :3], tf.float32) / 255.0, tf.cast(both[..., 3:], tf.float32)


fields = tf.data.Dataset.from_tensor_slices((tiles, masks)).cache().shuffle(96).repeat()
fields = fields.map(flip, num_parallel_calls=tf.data.AUTOTUNE).batch(8).prefetch(tf.data.AUTOTUNE)


def block(x, width):
    for _ in range(2):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return x


inputs = keras.Input((64, 64, 3))
skip1 = block(inputs, 24)
skip2 = block(layers.MaxPooling2D()(skip1), 48)
x = block(layers.MaxPooling2D()(skip2), 96)
x = block(layers.Concatenate()([layers.UpSampling2D()(x), skip2]), 48)
x = block(layers.Concatenate()([layers.UpSampling2D()(x), skip1]), 24)
model = keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))
model.compile("adam", "binary_crossentropy")
model.fit(fields, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
