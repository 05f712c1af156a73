"""Keras fit with jit_compile=True on dialogue turns, each batch padded to its own longest turn.

Planted: XLA compiles the step again for every new length. Fix: `padded_shapes` of one fixed length.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "recompilation",
    "also_right": ["retracing"], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "dialogue.padded_batch(32, padded_shapes=([96], []))", "change": "pad-shapes",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=12)
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(6)
lengths = rng.integers(20, 97, 4000)
flat = rng.integers(1, 3000, lengths.sum()).astype("int32")
turns = tf.RaggedTensor.from_row_lengths(flat, lengths)
intent = rng.integers(0, 20, 4000)

dialogue = tf.data.Dataset.from_tensor_slices((turns, intent))
dialogue = dialogue.map(lambda turn, label: (tf.convert_to_tensor(turn), label), tf.data.AUTOTUNE).repeat()
dialogue = dialogue.padded_batch(32, padded_shapes=([96 if run.fixed else None], []), drop_remainder=True)
dialogue = dialogue.prefetch(tf.data.AUTOTUNE)

tokens = keras.Input((None,), dtype="int32")
x = layers.Embedding(3000, 96)(tokens)
x = layers.Conv1D(128, 5, padding="same", activation="gelu")(x)
x = layers.Conv1D(128, 5, padding="same", activation="gelu")(x)
x = layers.GlobalAveragePooling1D()(x)
model = keras.Model(tokens, layers.Dense(20)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
model.fit(dialogue, steps_per_epoch=run.keras_steps, epochs=1, shuffle=False, verbose=0, callbacks=run.keras())
run.done()
