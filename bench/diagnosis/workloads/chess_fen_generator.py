"""Keras fit on chess positions; a Python generator turns every FEN string into planes, `from_generator` feeds them.

Planted: positions are parsed in Python, one square at a time, on the way into the model.
Fix: parse them all at once with a NumPy lookup table and feed the arrays.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": ["Generator"], "healthy": False, "kind": "input",
    "fix": "tf.data.Dataset.from_tensor_slices((planes_of(positions), scores)) instead of from_generator",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(51)
rng = np.random.default_rng(51)
PIECES = "PNBRQKpnbrqk"
# 1 in a board string is an empty square, as in a FEN whose digits were written out.
positions = ["".join(rng.choice(list("1" * 20 + PIECES), 64)) for _ in range(2000)]
scores = rng.standard_normal(2000).astype("float32")


def games():
    while True:
        for board, score in zip(positions, scores):
            planes = np.zeros((8, 8, 12), np.float32)
            for square, letter in enumerate(board):
                if letter != "1":
                    planes[square // 8, square % 8, PIECES.index(letter)] = 1.0
            yield planes, score


def planes_of(boards):
    table = np.zeros((256, 12), np.float32)
    for at, letter in enumerate(PIECES):
        table[ord(letter), at] = 1.0
    codes = np.frombuffer("".join(boards).encode(), np.uint8)
    return table[codes].reshape(-1, 8, 8, 12)


if run.fixed:
    feed = tf.data.Dataset.from_tensor_slices((planes_of(positions), scores)).repeat()
else:
    feed = tf.data.Dataset.from_generator(games, output_signature=(
        tf.TensorSpec((8, 8, 12), tf.float32), tf.TensorSpec((), tf.float32)))
feed = feed.shuffle(500, seed=3).batch(128).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((8, 8, 12)),
    layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(1, activation="tanh"),
])
model.compile(keras.optimizers.SGD(0.01), "mse")
model.fit(feed, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
