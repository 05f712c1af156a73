"""A regression in a loop of its own that writes histograms of its gradients."""
import json
import tempfile
import time

import numpy as np
import tensorflow as tf

STEPS, WARM = 210, 10
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
        record[f"layer{name}"] = {
            "counts": counts.tolist(),
            "edges": edges.tolist(),
            "percentiles": np.percentile(values, range(0, 101, 5)).tolist(),
        }
    file.write(json.dumps(record) + "\n")


def main():
    log = open(tempfile.mkdtemp() + "/gradients.jsonl", "w")
    for step in range(STEPS):
        if step == WARM:
            began = time.perf_counter()
        loss, gradients = train_step(x)
        log_gradients(log, step, loss, gradients)
    loss.numpy()
    print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")


if __name__ == "__main__":
    main()
