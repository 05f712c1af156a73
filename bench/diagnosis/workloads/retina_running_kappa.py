"""Grades retinas with train_on_batch; after every batch the quadratic weighted kappa of all grades seen so far is
computed anew in plain Python, as in many Kaggle notebooks.

Planted: a metric in Python between the steps, over a list that grows. Fix: compute it once per epoch.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "if (step + 1) % 100 == 0: print(kappa(seen, given))",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=40)
import numpy as np
import keras
from keras import layers

rng = np.random.default_rng(14)
images = rng.random((512, 48, 48, 3), dtype=np.float32)
grades = rng.integers(0, 5, 512)
model = keras.Sequential([
    keras.Input((48, 48, 3)),
    layers.Conv2D(12, 3, strides=2, activation="relu"),
    layers.Conv2D(24, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(5),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def kappa(a, b):
    table = [[0] * 5 for _ in range(5)]
    for x, y in zip(a, b):
        table[x][y] += 1
    rows = [sum(row) for row in table]
    columns = [sum(row[k] for row in table) for k in range(5)]
    seen = expected = 0.0
    for i in range(5):
        for j in range(5):
            weight = (i - j) ** 2 / 16
            seen += weight * table[i][j]
            expected += weight * rows[i] * columns[j] / len(a)
    return 1 - seen / max(expected, 1e-9)


# The earlier epochs' grades are in the lists already.
seen, given = rng.integers(0, 5, 140000).tolist(), rng.integers(0, 5, 140000).tolist()
for step in run.loop():
    with run.mark(step):
        rows = rng.integers(0, 512, 32)
        model.train_on_batch(images[rows], grades[rows])
        guess = model.predict_on_batch(images[rows]).argmax(-1)
        seen.extend(grades[rows].tolist())
        given.extend(guess.tolist())
        if not run.fixed or (step + 1) % 100 == 0:
            with run.part("python"):
                value = kappa(seen, given)
