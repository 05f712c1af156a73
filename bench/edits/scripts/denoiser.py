"""A denoising autoencoder, trained with a gradient tape."""
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS, WARM = 120, 10
rng = np.random.default_rng(3)
signals = rng.standard_normal((4096, 64)).astype("float32")

model = keras.Sequential([
    keras.Input((64,)),
    layers.Dense(96, activation="gelu"),
    layers.LayerNormalization(),
    layers.Dense(24),
    layers.Dense(96, activation="gelu"),
    layers.LayerNormalization(),
    layers.Dense(64),
])
optimizer = keras.optimizers.Adam(1e-3)


def train_step(clean):
    noisy = clean + 0.1 * tf.random.normal(tf.shape(clean))
    with tf.GradientTape() as tape:
        restored = model(noisy, training=True)
        loss = tf.reduce_mean(tf.square(restored - clean))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


ds = tf.data.Dataset.from_tensor_slices(signals).shuffle(4096).repeat().batch(128).prefetch(2).take(STEPS)
losses = []
for step, batch in enumerate(ds):
    if step == WARM:
        began = time.perf_counter()
    loss = train_step(batch)
    losses.append(loss)
print(f"loss {float(loss):.3f}")
print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")
