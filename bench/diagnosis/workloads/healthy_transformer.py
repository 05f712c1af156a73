"""Healthy: two transformer blocks in one tf.function, padded batches, the loss read every 10th step. No markers."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=4, steps=16)
run.marked = False
import numpy as np
import tensorflow as tf
import keras
from keras import layers

tokens = np.random.default_rng(2).integers(0, 2000, (2048, 65)).astype("int32")
corpus = tf.data.Dataset.from_tensor_slices(tokens).repeat().batch(16).prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((64,), dtype="int32")
hidden = layers.Embedding(2000, 128)(inputs)
for _ in range(2):
    normal = layers.LayerNormalization()(hidden)
    hidden = hidden + layers.MultiHeadAttention(4, 32)(normal, normal, use_causal_mask=True)
    hidden = hidden + layers.Dense(128)(layers.Dense(512, activation="gelu")(layers.LayerNormalization()(hidden)))
model = keras.Model(inputs, layers.Dense(2000)(hidden))
optimizer = keras.optimizers.AdamW(3e-4)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        logits = model(batch[:, :-1], training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch[:, 1:], logits))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


batches = iter(corpus)
loss = tf.constant(0.0)
for step in run.loop():
    loss = train_step(next(batches))
    if step % 10 == 0:
        loss.numpy()
