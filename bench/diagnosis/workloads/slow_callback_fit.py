"""Keras fit with a callback that evaluates a moving average and redraws a text dashboard after each batch.

Planted: a slow `on_train_batch_end`. Fix: do it every 25th batch.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "if batch % 25 == 0 in Dashboard.on_train_batch_end",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=30)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(16)
x = rng.standard_normal((4096, 64)).astype("float32")
y = rng.integers(0, 4, 4096)


class Dashboard(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])
        if run.fixed and batch % 25:
            return
        with run.part("python"):
            # The whole curve is smoothed again for each new point, and a chart is drawn in characters.
            curve = np.interp(np.linspace(0, len(self.losses), 600), range(len(self.losses)), self.losses)
            smooth = [float(np.mean(curve[max(0, at - 50):at + 1])) for at in range(len(curve))]
            top = max(smooth)
            rows = ["".join("#" if value / top > level / 12 else " " for value in smooth[::6]) for level in range(12)]
            self.chart = "\n".join(rows)


model = keras.Sequential([keras.Input((64,)), layers.Dense(256, activation="relu"), layers.Dropout(0.1),
                          layers.Dense(256, activation="relu"), layers.Dense(4)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
train = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(128).prefetch(tf.data.AUTOTUNE)
model.fit(train, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0,
          callbacks=[*run.keras(), Dashboard()])
run.done()
