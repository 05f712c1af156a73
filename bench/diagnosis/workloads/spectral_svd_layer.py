"""A critic whose Dense layers divide their kernel by its largest singular value, under Keras fit. The value comes from
a full decomposition in every call.

Planted: tf.linalg.svd in the layer. Fix: one step of power iteration with a kept vector.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": ["vd"], "healthy": False, "kind": "compute",
    "fix": "power iteration instead of tf.linalg.svd in SpectralDense.call",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf
import keras
from keras import layers


class SpectralDense(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros")
        self.u = self.add_weight(shape=(1, self.units), initializer="random_normal", trainable=False)

    def call(self, inputs):
        kernel = tf.convert_to_tensor(self.kernel)
        fixed_kernel = tf.stop_gradient(kernel)
        if run.fixed:
            v = tf.math.l2_normalize(tf.convert_to_tensor(self.u) @ tf.transpose(fixed_kernel))
            u = tf.math.l2_normalize(v @ fixed_kernel)
            self.u.assign(u)
            sigma = tf.reduce_sum((v @ fixed_kernel) * u)
        else:
            sigma = tf.linalg.svd(fixed_kernel, compute_uv=False)[0]
        return inputs @ (kernel / sigma) + self.bias


rng = np.random.default_rng(0)
x = rng.standard_normal((4096, 128)).astype("float32")
y = rng.standard_normal((4096, 1)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(4096).repeat().batch(256).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((128,)), SpectralDense(192), layers.LeakyReLU(), SpectralDense(192),
                          layers.LeakyReLU(), layers.Dense(1)])
model.compile("adam", "mse")
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
