"""A physics-informed network for Burgers' equation with nested gradient tapes and a Keras optimizer.

Planted: the training step is an ordinary Python function; every op of it is dispatched on its own.
Fix: @tf.function.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "eager-ops",
    "also_right": ["tiny-ops"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "@tf.function on train_step", "change": "compile-step",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=25)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
inside = tf.constant(rng.uniform(-1, 1, (2048, 2)), tf.float32)
edge = tf.constant(rng.uniform(-1, 1, (512, 2)), tf.float32)
edge_value = -tf.sin(np.pi * edge[:, :1])
model = keras.Sequential([keras.Input((2,))])
for _ in range(5):
    model.add(layers.Dense(64, activation="tanh"))
model.add(layers.Dense(1))
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)
viscosity = 0.01 / np.pi


def train_step(inside, edge, edge_value):
    x, t = inside[:, :1], inside[:, 1:]
    with tf.GradientTape() as tape:
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape(persistent=True) as first:
                first.watch(x)
                first.watch(t)
                u = model(tf.concat([x, t], 1), training=True)
            u_x = first.gradient(u, x)
            u_t = first.gradient(u, t)
        u_xx = second.gradient(u_x, x)
        residual = u_t + u * u_x - viscosity * u_xx
        loss = tf.reduce_mean(residual**2) + tf.reduce_mean((model(edge, training=True) - edge_value) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if run.fixed:
    train_step = tf.function(train_step)
losses = []
for step in run.loop():
    with run.mark(step):
        losses.append(train_step(inside, edge, edge_value))
