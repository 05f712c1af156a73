"""A regression in a custom loop that writes gradient histograms as JSON after every step, outside the step marker.

Planted: logging in Python between the steps. Fix: log every 50th step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "if step % 50 == 0: log_gradients(...)",
}
import json

from _driver import Run

run = Run("tensorflow", warm=5, steps=25)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = tf.constant(rng.standard_normal((256, 256)), tf.float32)
weights = [tf.Variable(tf.random.normal((256, 256), stddev=0.06)) for _ in range(3)]


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        hidden = x
        for weight in weights:
            hidden = tf.nn.gelu(hidden @ weight)
        loss = tf.reduce_mean(tf.square(hidden - x))
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(0.01 * gradient)
    return loss, gradients


def log_gradients(file, step, loss, gradients):
    record = {"step": step, "loss": float(loss)}
    for name, gradient in enumerate(gradients):
        values = gradient.numpy().ravel()
        counts, edges = np.histogram(values, bins=64)
        record[f"layer{name}"] = {"counts": counts.tolist(), "edges": edges.tolist(),
                                  "percentiles": np.percentile(values, range(0, 101, 5)).tolist()}
    file.write(json.dumps(record) + "\n")
    file.flush()


log = open(run.scratch / "gradients.jsonl", "w")
for step in run.loop():
    with run.mark(step):
        loss, gradients = train_step(x)
        loss.numpy()
    if not run.fixed or step % 50 == 0:
        with run.part("python"):
            log_gradients(log, step, loss, gradients)
