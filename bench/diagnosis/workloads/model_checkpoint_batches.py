"""Keras fit with ModelCheckpoint(save_freq=5): the whole model is written every five batches.

Planted: saving stalls the training. Fix: save_freq="epoch".
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"],
    "same_fix": ["step-outliers", "python-overhead"], "must_name": [], "healthy": False, "kind": "python",
    "fix": 'keras.callbacks.ModelCheckpoint(..., save_freq="epoch")',
}
from _driver import Run

run = Run("tensorflow", warm=10, steps=31)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(18)
x = rng.standard_normal((2048, 256)).astype("float32")
y = rng.integers(0, 20, 2048)
train = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(128).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((256,)), layers.Dense(512, activation="relu"),
                          layers.Dense(512, activation="relu"), layers.Dense(20)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
keeper = keras.callbacks.ModelCheckpoint(str(run.scratch / "best.keras"), save_freq="epoch" if run.fixed else 5)
model.fit(train, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=[*run.keras(), keeper])
run.done()
