"""Classifies birdsong: spectrograms of random clips are made on the way, in a loop of its own."""
import time

import numpy as np
import tensorflow as tf

STEPS, WARM = 130, 20
rng = np.random.default_rng(5)
recordings = rng.standard_normal((64, 24_000)).astype("float32")
species = rng.integers(0, 12, 64).astype("int32")
mel = tf.signal.linear_to_mel_weight_matrix(48, 257, 16_000)


def spectrogram(recording, label):
    clip = tf.image.random_crop(recording, (16_000,))
    power = tf.abs(tf.signal.stft(clip, 512, 128)) ** 2
    return tf.math.log(power @ mel + 1e-6), label


ds = tf.data.Dataset.from_tensor_slices((recordings, species))
ds = (
    ds.shuffle(64)
    .repeat()
    .map(spectrogram)
    .batch(16)
    .prefetch(tf.data.AUTOTUNE)
    .take(STEPS)
)
first = tf.Variable(tf.random.normal((48, 64), stddev=0.1))
second = tf.Variable(tf.random.normal((64, 12), stddev=0.1))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = tf.reduce_max(tf.nn.relu(x @ first), 1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, hidden @ second))
    for weight, gradient in zip((first, second), tape.gradient(loss, (first, second))):
        weight.assign_sub(0.01 * gradient)
    return loss


for step, (x, y) in enumerate(ds):
    if step == WARM:
        began = time.perf_counter()
    loss = train_step(x, y)
print(f"loss {float(loss):.3f}")
print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")
