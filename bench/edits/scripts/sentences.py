"""A language model on sentences of many lengths."""
import time

import numpy as np
import tensorflow as tf

STEPS, WARM = 60, 10
VOCABULARY, WIDTH = 2000, 64
rng = np.random.default_rng(12)
embedding = tf.Variable(tf.random.normal((VOCABULARY, WIDTH), stddev=0.1))
mix = tf.Variable(tf.random.normal((WIDTH, WIDTH), stddev=0.1))
optimizer = tf.keras.optimizers.SGD(0.1)
optimizer.build([embedding, mix])


@tf.function
def train_step(tokens):
    with tf.GradientTape() as tape:
        hidden = tf.gather(embedding, tokens[:, :-1])
        for _ in range(6):
            hidden = hidden + tf.nn.gelu(hidden @ mix)
        logits = tf.einsum("btw,vw->btv", hidden, embedding)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, 1:], logits))
    gradients = tape.gradient(loss, [embedding, mix])
    optimizer.apply_gradients(zip(gradients, [embedding, mix]))
    return loss


def batches():
    lengths = rng.permutation(np.arange(8, 8 + STEPS))
    for length in lengths:
        yield tf.constant(rng.integers(0, VOCABULARY, (8, length)), tf.int32)


for step, tokens in enumerate(batches()):
    if step == WARM:
        began = time.perf_counter()
    loss = train_step(tokens)
print(f"loss {float(loss):.3f}")
print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")
