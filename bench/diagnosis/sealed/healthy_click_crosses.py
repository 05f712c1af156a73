"""Healthy: a deep & cross network on click logs in a custom loop without markers, batches of 1,024 fetched ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
clicks = rng.standard_normal((20_000, 384)).astype("float32")
clicked = rng.integers(0, 2, (20_000, 1)).astype("float32")
logs = tf.data.Dataset.from_tensor_slices((clicks, clicked)).repeat().batch(1024).prefetch(tf.data.AUTOTUNE)

cross = [tf.Variable(tf.random.normal((384, 384), stddev=0.02)) for _ in range(3)]
deep = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in ((384, 768), (768, 768), (768, 384))]
head = tf.Variable(tf.random.normal((768, 1), stddev=0.05))
weights = [*cross, *deep, head]


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        crossed, h = x, x
        for weight in cross:
            crossed = x * (crossed @ weight) + crossed
        for weight in deep:
            h = tf.nn.relu(h @ weight)
        logits = tf.concat([crossed, h], 1) @ head
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


batches = iter(logs)
for step in run.loop():
    x, y = next(batches)
    loss = train_step(x, y)
    if step % 20 == 0:
        print(step, float(loss))
