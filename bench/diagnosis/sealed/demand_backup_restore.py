"""Keras fit of a demand forecast with BackupAndRestore, guarding against preemption every fifth batch.

Planted: the training waits while weights and optimizer state are written. Fix: `save_freq="epoch"`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"], "same_fix": ["step-outliers", "python-overhead"],
    "must_name": [], "healthy": False, "kind": "compute",
    "fix": "keras.callbacks.BackupAndRestore(folder, save_freq=\"epoch\")", "change": "every-n-steps",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=33)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(0)
history = rng.standard_normal((2048, 168)).astype("float32")
demand = rng.standard_normal((2048, 24)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((history, demand)).repeat().shuffle(1024).batch(128).prefetch(4)

model = keras.Sequential([keras.Input((168,))])
for _ in range(4):
    model.add(layers.Dense(640, activation="relu"))
model.add(layers.Dense(24))
model.compile("adam", "mse")
backup = keras.callbacks.BackupAndRestore(str(run.scratch / "backup"), save_freq="epoch" if run.fixed else 5)
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=[backup, *run.keras()])
run.done()
