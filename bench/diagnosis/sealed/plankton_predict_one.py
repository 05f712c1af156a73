"""Labelling plankton photos in a notebook: `model.predict` is called for one photo at a time.

Planted: a call for one photo costs far more than its arithmetic. Fix: predict 8 photos in a call.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "small-batch",
    "also_right": ["python-overhead", "tiny-ops"], "same_fix": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "model.predict(photos[i:i + 8]) instead of one photo per call", "change": "larger-batch",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=30)
import numpy as np
import keras
from keras import layers

run.items = batch = 8 if run.fixed else 1
rng = np.random.default_rng(0)
photos = rng.random((256, 64, 64, 1), np.float32)
x = inputs = keras.Input((64, 64, 1))
for width in (16, 32, 64, 128):
    x = layers.SeparableConv2D(width, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.MaxPooling2D()(x)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(40, activation="softmax")(x))
labels = []
for i in run.loop():
    first = i * batch % 256
    with run.mark(i, "predict"):
        scores = model.predict(photos[first:first + batch], batch_size=batch, verbose=0)
    labels.extend(scores.argmax(1))
