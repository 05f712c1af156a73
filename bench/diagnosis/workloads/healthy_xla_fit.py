"""Healthy: a dense network under Keras fit with jit_compile=True; a callback starts the profiler, no markers."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(5)
x = rng.standard_normal((8192, 512)).astype("float32")
y = rng.integers(0, 100, 8192)
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(512).cache().repeat().prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((512,)), layers.Dense(1024, activation="gelu"),
                          layers.Dense(1024, activation="gelu"), layers.Dense(100)])
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              jit_compile=True)
model.fit(train, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0,
          callbacks=run.keras(tensorboard=False))
run.done()
