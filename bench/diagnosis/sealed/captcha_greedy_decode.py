"""Reading captchas: predict_on_batch, then a greedy CTC decoding of every image in Python.

Planted: the decoding loops over images and time steps between two predictions. Fix: collapse repeats and blanks
with NumPy for the whole batch.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "one argmax and one mask of repeats and blanks for the batch instead of the loop over time steps",
    "change": "vectorize",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=40)
import numpy as np
import keras
from keras import layers

rng = np.random.default_rng(0)
alphabet = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz") + [""])
BLANK = 36
images = rng.random((512, 32, 128, 1), np.float32)

pixels = keras.Input((32, 128, 1))
x = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(pixels)
x = layers.Conv2D(32, 3, strides=(2, 1), padding="same", activation="relu")(x)
x = layers.Permute((2, 1, 3))(x)
x = layers.Reshape((64, 8 * 32))(x)
x = layers.Dense(96, activation="relu")(x)
model = keras.Model(pixels, layers.Dense(37, activation="softmax")(x))
model.compile()


def greedy_decode(probabilities):
    texts = []
    for image in probabilities:
        text, before = "", -1
        for frame in image:
            best = int(np.argmax(frame))
            if best != before and best != BLANK:
                text += alphabet[best]
            before = best
        texts.append(text)
    return texts


def greedy_decode_batch(probabilities):
    best = probabilities.argmax(-1)
    keep = best != BLANK
    keep[:, 1:] &= best[:, 1:] != best[:, :-1]
    return ["".join(alphabet[row[kept]]) for row, kept in zip(best, keep)]


read = {}
for step in run.loop():
    first = step * 64 % 512
    with run.mark(step, "predict"):
        probabilities = model.predict_on_batch(images[first:first + 64])
        with run.part("python"):
            texts = greedy_decode_batch(probabilities) if run.fixed else greedy_decode(probabilities)
        read[first] = texts
