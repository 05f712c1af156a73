"""Keras fit on a PyDataset that paints piano rolls from note lists, note after note.

Planted: `__getitem__` is a Python loop over thousands of notes. Fix: mark starts and ends with np.add.at, then cumsum.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": [], "healthy": False, "kind": "input",
    "fix": "np.add.at on starts and ends and one np.cumsum instead of the loop over notes", "change": "vectorize",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(1)
TICKS, KEYS, NOTES = 192, 64, 260
songs = np.stack([rng.integers(0, TICKS - 16, (400, NOTES)), rng.integers(1, 16, (400, NOTES)),
                  rng.integers(0, KEYS, (400, NOTES))], -1)
composer = rng.integers(0, 12, 400)


class PianoRolls(keras.utils.PyDataset):
    def __init__(self, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.batch_size = batch_size

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        chosen = (np.arange(self.batch_size) + index * self.batch_size) % len(songs)
        if run.fixed:
            start, length, key = songs[chosen].transpose(2, 0, 1)
            row = np.arange(self.batch_size)[:, None]
            change = np.zeros((self.batch_size, TICKS + 1, KEYS), np.float32)
            np.add.at(change, (row, start, key), 1)
            np.add.at(change, (row, start + length, key), -1)
            return np.minimum(np.cumsum(change, 1)[:, :TICKS], 1), composer[chosen]
        rolls = np.zeros((self.batch_size, TICKS, KEYS), np.float32)
        for roll, song in zip(rolls, chosen):
            for start, length, key in songs[song]:
                roll[start:start + length, key] = 1
        return rolls, composer[chosen]


model = keras.Sequential([
    keras.Input((TICKS, KEYS)),
    layers.Conv1D(32, 5, strides=2, activation="relu"),
    layers.Conv1D(64, 5, strides=2, activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(12),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(PianoRolls(32), steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
