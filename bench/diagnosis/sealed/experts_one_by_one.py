"""A mixture of experts over house prices in one tf.function; the experts are applied one after the other.

Planted: 160 small experts in a Python loop become hundreds of small ops. Fix: stack the experts and apply them with
two einsums.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "tiny-ops",
    "also_right": [], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "tf.einsum over the stacked experts instead of the loop over experts", "change": "vectorize",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=40)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
EXPERTS, WIDTH, HIDDEN = 160, 32, 8
houses = rng.standard_normal((4096, WIDTH)).astype("float32")
prices = rng.standard_normal((4096, 1)).astype("float32")
gate = tf.Variable(tf.random.normal((WIDTH, EXPERTS), stddev=0.1))
if run.fixed:
    first = tf.Variable(tf.random.normal((EXPERTS, WIDTH, HIDDEN), stddev=0.1))
    second = tf.Variable(tf.random.normal((EXPERTS, HIDDEN, 1), stddev=0.1))
    weights = [gate, first, second]
else:
    first = [tf.Variable(tf.random.normal((WIDTH, HIDDEN), stddev=0.1)) for _ in range(EXPERTS)]
    second = [tf.Variable(tf.random.normal((HIDDEN, 1), stddev=0.1)) for _ in range(EXPERTS)]
    weights = [gate, *first, *second]


def mixture(x):
    gates = tf.nn.softmax(x @ gate)
    if run.fixed:
        hidden = tf.nn.relu(tf.einsum("bw,ewh->ebh", x, first))
        return tf.einsum("ebo,be->bo", tf.matmul(hidden, second), gates)
    answers = [tf.nn.relu(x @ a) @ b for a, b in zip(first, second)]
    return tf.add_n([gates[:, e:e + 1] * answer for e, answer in enumerate(answers)])


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(mixture(x) - y))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    return loss


data = tf.data.Dataset.from_tensor_slices((houses, prices)).repeat().shuffle(1024).batch(64).prefetch(4)
batches = iter(data)
for step in run.loop():
    x, y = next(batches)
    loss = train_step(x, y)
    if step % 20 == 0:
        print(step, float(loss))
