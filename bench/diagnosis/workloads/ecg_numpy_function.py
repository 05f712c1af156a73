"""Keras fit on heartbeat signals; each signal is filtered in NumPy inside `tf.numpy_function`.

Planted: Python in the `map`, which holds the interpreter lock, so that parallel calls do not help.
Fix: the same moving average with TensorFlow ops.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": ["PyFunc"], "healthy": False, "kind": "input",
    "fix": "write denoise with TensorFlow ops (tf.nn.conv1d) instead of tf.numpy_function",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(2)
beats = rng.standard_normal((400, 360)).astype("float32")
kinds = rng.integers(0, 5, 400).astype("int32")


def denoise_numpy(signal):
    out = signal.copy()
    for at in range(2, len(signal) - 2):
        out[at] = (signal[at - 2] + signal[at - 1] + signal[at] + signal[at + 1] + signal[at + 2]) / 5
    return (out - out.mean()) / (out.std() + 1e-6)


def denoise(signal, kind):
    if run.fixed:
        out = tf.nn.conv1d(signal[None, :, None], tf.ones((5, 1, 1)) / 5, 1, "SAME")[0, :, 0]
        out = (out - tf.reduce_mean(out)) / (tf.math.reduce_std(out) + 1e-6)
    else:
        out = tf.numpy_function(denoise_numpy, [signal], tf.float32)
    return tf.ensure_shape(out, (360,)), kind


ecg = tf.data.Dataset.from_tensor_slices((beats, kinds)).repeat().shuffle(400)
ecg = ecg.map(denoise, num_parallel_calls=tf.data.AUTOTUNE).batch(64).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((360,)), layers.Reshape((360, 1)),
    layers.Conv1D(16, 7, strides=2, activation="relu"), layers.Conv1D(32, 5, strides=2, activation="relu"),
    layers.GlobalMaxPooling1D(), layers.Dense(5),
])
model.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(ecg, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
