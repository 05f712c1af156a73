"""Healthy: a denoising autoencoder in a GradientTape loop without markers, its patches cached, parallel and fetched
ahead; the loss is read every 20th step."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(0)
patches = rng.random((768, 48, 48, 1), dtype=np.float32)


def noisy(patch):
    return patch + tf.random.normal((48, 48, 1), stddev=0.1), patch


data = tf.data.Dataset.from_tensor_slices(patches).cache().shuffle(768).repeat()
data = data.map(noisy, num_parallel_calls=tf.data.AUTOTUNE).batch(48, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([
    keras.Input((48, 48, 1)),
    layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
    layers.Conv2D(64, 3, padding="same", activation="relu"),
    layers.Conv2D(64, 3, padding="same", activation="relu"),
    layers.Conv2DTranspose(32, 4, strides=2, padding="same", activation="relu"),
    layers.Conv2D(1, 3, padding="same"),
])
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(dirty, clean):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(dirty, training=True) - clean))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


batches = iter(data)
for step in run.loop():
    dirty, clean = next(batches)
    loss = train_step(dirty, clean)
    if step % 20 == 0:
        print(step, float(loss))
