"""train_on_batch over whale calls: quiet clips are filtered out, the rest are batched and handed over.

Planted: no `prefetch` after the filter and the batch (tf.data's autotuning, which would add one, is off), so
choosing clips and training take turns. Fix: `prefetch`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound"], "must_name": ["prefetch"], "healthy": False, "kind": "compute",
    "fix": "clips.filter(loud_enough).batch(128).prefetch(tf.data.AUTOTUNE)", "change": "prefetch",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=40)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(5)
waves = rng.standard_normal((3000, 1024)).astype("float32") * rng.uniform(0.2, 1.8, (3000, 1)).astype("float32")
species = rng.integers(0, 6, 3000)


def loud_enough(wave, label):
    frames = tf.signal.frame(wave, 128, 64)
    return tf.reduce_max(tf.math.reduce_std(frames, axis=1)) > 0.7


clips = tf.data.Dataset.from_tensor_slices((waves, species)).repeat()
clips = clips.filter(loud_enough).batch(128)
if run.fixed:
    clips = clips.prefetch(2)
options = tf.data.Options()
options.autotune.enabled = False
options.experimental_optimization.inject_prefetch = False
clips = clips.with_options(options)

model = keras.Sequential([
    keras.Input((1024,)),
    layers.Reshape((64, 16)),
    layers.GRU(24, use_cudnn=False),
    layers.Dense(6),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
batches = iter(clips)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            x, y = next(batches)
        model.train_on_batch(x, y)
