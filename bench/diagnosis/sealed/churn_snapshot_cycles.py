"""Customer churn with train_on_batch; the learning rate is set by compiling the model anew every fourth step.

Planted: `model.compile` throws the traced training function away, and the next step traces it again.
Fix: assign `model.optimizer.learning_rate`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "model.optimizer.learning_rate = rate instead of model.compile(...) in the loop", "change": "create-once",
}
import math

from _driver import Run

run = Run("tensorflow", warm=9, steps=24)
import numpy as np
import keras
from keras import layers

rng = np.random.default_rng(8)
customers = rng.standard_normal((8192, 120)).astype("float32")
churned = rng.integers(0, 2, (8192, 1)).astype("float32")

inputs = keras.Input((120,))
x = layers.Dense(1024, activation="relu")(inputs)
x = layers.BatchNormalization()(x)
x = layers.Dense(1024, activation="relu")(x)
x = layers.Dropout(0.3)(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)


def compile_with(rate):
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), "binary_crossentropy")


compile_with(0.1)
for step in run.loop():
    rate = 0.05 * (1 + math.cos(math.pi * (step // 4 % 10) / 10))
    with run.mark(step):
        if step % 4 == 0:
            if run.fixed:
                model.optimizer.learning_rate = rate
            else:
                compile_with(rate)
        chosen = rng.integers(0, len(customers), 512)
        model.train_on_batch(customers[chosen], churned[chosen])
