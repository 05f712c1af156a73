"""A miniature GPT under Keras fit, after the Keras example: a callback writes a sample of text every eighth batch,
token by token.

Planted: sampling inside the training makes every eighth step many times longer. Fix: sample every 500th batch.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "step-outliers",
    "also_right": ["python-overhead", "eager-ops"], "same_fix": ["python-overhead"], "must_name": [],
    "healthy": False, "kind": "compute", "fix": "TextGenerator(every=500)",
}
from _driver import Run

run = Run("tensorflow", warm=9, steps=33)
import numpy as np
import tensorflow as tf
import keras
from keras import layers, ops

VOCABULARY, LENGTH, WIDTH = 600, 40, 64
rng = np.random.default_rng(0)
tokens = rng.integers(0, VOCABULARY, (2000, LENGTH + 1)).astype("int32")
data = tf.data.Dataset.from_tensor_slices((tokens[:, :-1], tokens[:, 1:])).cache().shuffle(2000).repeat()
data = data.batch(32).prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((LENGTH,), dtype="int32")
x = layers.Embedding(VOCABULARY, WIDTH)(inputs) + layers.Embedding(LENGTH, WIDTH)(ops.arange(LENGTH))
for _ in range(2):
    attended = layers.MultiHeadAttention(2, 32)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attended)
    x = layers.LayerNormalization()(x + layers.Dense(WIDTH)(layers.Dense(128, activation="relu")(x)))
model = keras.Model(inputs, layers.Dense(VOCABULARY)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class TextGenerator(keras.callbacks.Callback):
    def __init__(self, every):
        super().__init__()
        self.every = every

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every != self.every - 1:
            return
        text = [1, 2, 3]
        while len(text) < LENGTH:
            padded = np.zeros((1, LENGTH), np.int32)
            padded[0, :len(text)] = text
            logits = self.model.predict_on_batch(padded)[0, len(text) - 1]
            best = np.argsort(logits)[-10:]
            chance = np.exp(logits[best] - logits[best].max())
            text.append(int(rng.choice(best, p=chance / chance.sum())))


model.predict_on_batch(tokens[:1, :-1])
model.fit(data, steps_per_epoch=run.keras_steps, epochs=1, verbose=0,
          callbacks=[TextGenerator(500 if run.fixed else 8)] + run.keras())
run.done()
