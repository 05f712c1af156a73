"""Healthy: a convolutional network under Keras fit, its input parallel and fetched ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(0)
images = rng.integers(0, 255, (512, 32, 32, 3), dtype=np.uint8)
labels = rng.integers(0, 10, 512)


def prepare(image, label):
    return tf.image.random_flip_left_right(tf.cast(image, tf.float32) / 255.0), label


cifar = tf.data.Dataset.from_tensor_slices((images, labels)).cache().repeat().shuffle(512)
cifar = cifar.map(prepare, tf.data.AUTOTUNE).batch(64).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((32, 32, 3))])
for width in (32, 64, 64):
    model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
    model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
    model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(10))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(cifar, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
