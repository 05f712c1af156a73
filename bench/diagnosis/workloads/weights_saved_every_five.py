"""A Keras autoencoder in a custom loop that writes its weights to an HDF5 file every fifth step. No markers.

Planted: the loop waits for `model.save_weights`. Fix: save every 200 steps.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"],
    "same_fix": ["step-outliers", "python-overhead"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "if step % 200 == 0: model.save_weights(...)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=40)
run.marked = False
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(121)
readings = tf.constant(np.random.default_rng(121).standard_normal((64, 600)), tf.float32)
model = keras.Sequential([
    keras.Input((600,)),
    layers.Dense(768, activation="relu"), layers.Dense(48, activation="relu"),
    layers.Dense(768, activation="relu"), layers.Dense(600),
])
optimizer = keras.optimizers.Adam(1e-3)


@tf.function
def train_step(readings):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(readings, training=True) - readings))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step in run.loop():
    train_step(readings).numpy()
    if step % (200 if run.fixed else 5) == 4:
        with run.part("output"):
            model.save_weights(str(run.scratch / "last.weights.h5"))
