"""Bird calls under Keras fit, after the Keras audio examples: clips are batched first, then mixed up and turned
into spectrograms a whole batch at a time.

Planted: the costly `map` stands after `batch` and has no `num_parallel_calls`; its random draws keep TensorFlow from
making it parallel by itself. Fix: `num_parallel_calls=tf.data.AUTOTUNE` on that map.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "same_fix": ["input-bound"], "must_name": ["Map"],
    "healthy": False, "kind": "input",
    "fix": "clips.batch(32).map(mixup_spectrogram, num_parallel_calls=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=24)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

SPECIES = 12
rng = np.random.default_rng(3)
waves = rng.standard_normal((256, 16000)).astype("float32")
species = keras.utils.to_categorical(rng.integers(0, SPECIES, 256), SPECIES).astype("float32")


mel = tf.signal.linear_to_mel_weight_matrix(40, 129, 16000)


def mixup_spectrogram(wave, target):
    share = tf.random.uniform((tf.shape(wave)[0], 1), 0.6, 1.0)
    order = tf.random.shuffle(tf.range(tf.shape(wave)[0]))
    wave = share * wave + (1 - share) * tf.gather(wave, order)
    target = share * target + (1 - share) * tf.gather(target, order)
    wave += tf.random.normal(tf.shape(wave), stddev=0.01)
    spectrum = tf.abs(tf.signal.stft(wave, frame_length=256, frame_step=64))
    return tf.math.log(spectrum @ mel + 1e-6), target


clips = tf.data.Dataset.from_tensor_slices((waves, species)).shuffle(256).repeat().batch(32)
clips = clips.map(mixup_spectrogram, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
clips = clips.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.Input((247, 40)),
    layers.Conv1D(16, 5, strides=3, activation="relu"),
    layers.GlobalMaxPooling1D(),
    layers.Dense(SPECIES, activation="softmax"),
])
model.compile("adam", "categorical_crossentropy")
model.fit(clips, steps_per_epoch=run.keras_steps, epochs=1, verbose=0, callbacks=run.keras())
run.done()
