"""Classifies photos with Keras: JPEGs are decoded and augmented on the way."""
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS, WARM = 140, 20


class Clock(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == WARM:
            self.began = time.perf_counter()

    def on_train_end(self, logs=None):
        print(f"{1e3 * (time.perf_counter() - self.began) / (STEPS - WARM):.3f} ms per step")


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


ds = tf.data.Dataset.from_tensor_slices((photos, labels)).repeat().shuffle(64)
ds = ds.map(augment).batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((64, 64, 3)),
    layers.Conv2D(8, 3, strides=2, activation="relu"),
    layers.Conv2D(16, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(10),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(ds, steps_per_epoch=STEPS, verbose=0, callbacks=[Clock()])
