"""Training that runs a whole validation pass every eighth step.

Planted: evaluation inside the loop makes every eighth step many times longer. Fix: evaluate every 200 steps.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "step-outliers",
    "also_right": ["latency-tail"],
    "same_fix": ["latency-tail"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "if step % 200 == 0: evaluate()",
}
from _driver import Run

run = Run("tensorflow", warm=9, steps=48)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = tf.constant(rng.standard_normal((128, 128)), tf.float32)
validation = [tf.constant(rng.standard_normal((1024, 128)), tf.float32) for _ in range(12)]
layers = [tf.Variable(tf.random.normal((128, 128), stddev=0.1)) for _ in range(6)]


def forward(x):
    for layer in layers:
        x = tf.nn.gelu(x @ layer) + x
    return x


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(forward(x)))
    for layer, gradient in zip(layers, tape.gradient(loss, layers)):
        layer.assign_sub(1e-4 * gradient)
    return loss


@tf.function
def validate_batch(x):
    return tf.reduce_mean(tf.square(forward(x)))


for step in run.loop():
    with run.mark(step):
        train_step(x).numpy()
        if step % (200 if run.fixed else 8) == 7:
            with run.part("evaluation"):
                score = np.mean([validate_batch(it).numpy() for it in validation])
