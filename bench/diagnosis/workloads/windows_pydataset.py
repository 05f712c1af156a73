"""Power-load forecasting with a keras.utils.PyDataset, Kaggle style: __getitem__ cuts and scales its windows in a
Python loop.

Planted: the windows of a batch are made one by one in Python. Fix: one fancy index and one vectorised scaling.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound", "python-overhead"], "same_fix": ["input-bound", "python-overhead"], "must_name": [],
    "healthy": False, "kind": "input",
    "fix": "cut and scale all windows of the batch with one NumPy index instead of the loop in __getitem__",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=40)
import numpy as np
import keras
from keras import layers

PAST, AHEAD = 96, 12
rng = np.random.default_rng(4)
load = np.cumsum(rng.standard_normal((40000, 6)), 0).astype("float32")


class Windows(keras.utils.PyDataset):
    def __init__(self, series, batch_size, **options):
        super().__init__(**options)
        self.series, self.batch_size = series, batch_size
        self.starts = rng.permutation(len(series) - PAST - AHEAD)

    def __len__(self):
        return len(self.starts) // self.batch_size

    def __getitem__(self, number):
        starts = self.starts[number * self.batch_size:(number + 1) * self.batch_size]
        if run.fixed:
            span = self.series[starts[:, None] + np.arange(PAST + AHEAD)]
            past, ahead = span[:, :PAST], span[:, PAST:, 0]
            mean, spread = past.mean(1, keepdims=True), past.std(1, keepdims=True) + 1e-3
            return (past - mean) / spread, (ahead - mean[:, :, 0]) / spread[:, :, 0]
        inputs, targets = [], []
        for start in starts:
            past = self.series[start:start + PAST]
            ahead = self.series[start + PAST:start + PAST + AHEAD, 0]
            mean, spread = past.mean(0), past.std(0) + 1e-3
            inputs.append((past - mean) / spread)
            targets.append((ahead - mean[0]) / spread[0])
        return np.stack(inputs), np.stack(targets)


model = keras.Sequential([
    keras.Input((PAST, 6)),
    layers.Conv1D(16, 4, strides=4, activation="relu"),
    layers.Flatten(),
    layers.Dense(64, activation="relu"),
    layers.Dense(AHEAD),
])
model.compile("adam", "mse")
model.fit(Windows(load, 256), steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
