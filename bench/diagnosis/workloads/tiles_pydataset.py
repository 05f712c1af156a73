"""Keras fit on satellite tiles through keras.utils.PyDataset; every batch waits for a slow store.

Planted: `__getitem__` fetches with latency, in one worker. Fix: `workers=10, max_queue_size=20`, so that fetches
wait side by side.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": [], "healthy": False, "kind": "input",
    "fix": "SatelliteTiles(workers=10, use_multiprocessing=False, max_queue_size=20)",
}
import time

from _driver import Run

run = Run("tensorflow", warm=25, steps=30)
import numpy as np
import keras
from keras import layers

tiles = np.random.default_rng(4).random((64, 32, 32, 4), np.float32)
cover = np.random.default_rng(5).integers(0, 8, 64)


class SatelliteTiles(keras.utils.PyDataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        time.sleep(0.06)  # the object store's latency
        chosen = np.random.default_rng(index).integers(0, 64, 32)
        batch = tiles[chosen]
        return (batch - batch.mean()) / batch.std(), cover[chosen]


model = keras.Sequential([
    keras.Input((32, 32, 4)),
    layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, activation="relu"), layers.GlobalAveragePooling2D(),
    layers.Dense(8),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
train = SatelliteTiles(workers=10, max_queue_size=20) if run.fixed else SatelliteTiles()
model.fit(train, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, shuffle=False, callbacks=run.keras())
run.done()
