"""Scores product reviews with a trained Keras model, one `model.predict` per review.

Planted: a call for a single example. Fix: predict on 32 reviews at a time. Speed is judged per review.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "small-batch",
    "also_right": ["python-overhead", "tiny-ops"], "same_fix": ["python-overhead"], "must_name": [],
    "healthy": False,
    "kind": "runtime", "fix": "model.predict(reviews[start:start + 32]) instead of one review per call",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=30)
import numpy as np
import keras
from keras import layers

size = 32 if run.fixed else 1
run.items = size
rng = np.random.default_rng(0)
reviews = rng.integers(0, 5000, (4000, 120)).astype("int32")
model = keras.Sequential([
    keras.Input((120,), dtype="int32"),
    layers.Embedding(5000, 64),
    layers.Bidirectional(layers.GRU(32)),
    layers.Dense(1, activation="sigmoid"),
])
scores = []
for step in run.loop():
    with run.mark(step):
        chunk = reviews[step * size:(step + 1) * size]
        scores.extend(model.predict(chunk, verbose=0)[:, 0])
