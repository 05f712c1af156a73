"""Keyword spotting on audio; spectrograms are made in a serial map that does have a prefetch behind it. No markers.

Planted: one thread makes the spectrograms; prefetch alone cannot hide what is slower than the step.
Fix: `num_parallel_calls=tf.data.AUTOTUNE`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "clips.map(log_mel, num_parallel_calls=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=24)
run.marked = False
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(11)
clips = rng.standard_normal((96, 16000)).astype("float32")
labels = rng.integers(0, 12, 96).astype("int32")
mel = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 7600.0)


def log_mel(clip, label):
    clip = clip + tf.random.normal(tf.shape(clip), stddev=0.01)
    frames = tf.signal.stft(clip, frame_length=480, frame_step=160, fft_length=512)
    return tf.math.log(tf.abs(frames) @ mel + 1e-6), label


spoken = tf.data.Dataset.from_tensor_slices((clips, labels)).repeat()
spoken = spoken.map(log_mel, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
spoken = spoken.shuffle(64).batch(16).prefetch(4)

w1 = tf.Variable(tf.random.normal((40, 96), stddev=0.1))
w2 = tf.Variable(tf.random.normal((96, 12), stddev=0.1))


@tf.function
def train_step(features, label):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(features @ w1)
        logits = tf.reduce_mean(hidden, axis=1) @ w2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(0.05 * gradient)
    return loss


batches = iter(spoken)
for i in run.loop():
    with run.part("input"):
        features, label = next(batches)
    loss = train_step(features, label)
    loss.numpy()
