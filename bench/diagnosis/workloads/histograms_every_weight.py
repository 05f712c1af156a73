"""A deep regression in a GradientTape loop that writes a histogram of every weight and every gradient to an event file
in every step, as TensorBoard users do. (The package tensorboard is not needed: the op under tf.summary.histogram's
older form is called.)

Planted: 32 histograms a step. Fix: write them every 100th step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": ["eager-ops", "checkpoint-stall", "dominant-op"],
    "same_fix": ["checkpoint-stall", "dominant-op"], "must_name": ["ummary"], "healthy": False, "kind": "output",
    "fix": "if step % 100 == 0: write_histograms(...)",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=30)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = tf.constant(rng.standard_normal((128, 64)), tf.float32)
y = tf.constant(rng.standard_normal((128, 1)), tf.float32)
sizes = [64] + [160] * 7 + [1]
weights = []
for size, following in zip(sizes, sizes[1:]):
    weights.append(tf.Variable(tf.random.normal((size, following), stddev=size ** -0.5)))
    weights.append(tf.Variable(tf.zeros(following)))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = x
        for layer in range(0, len(weights), 2):
            hidden = hidden @ weights[layer] + weights[layer + 1]
            if layer < len(weights) - 2:
                hidden = tf.nn.swish(hidden)
        loss = tf.reduce_mean(tf.square(hidden - y))
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(1e-3 * gradient)
    return loss, gradients


writer = tf.summary.create_file_writer(str(run.scratch / "events"))


def write_histograms(step, loss, gradients):
    for number, (weight, gradient) in enumerate(zip(weights, gradients)):
        for tag, values in ((f"weight/{number}", weight.read_value()), (f"gradient/{number}", gradient)):
            tf.raw_ops.WriteHistogramSummary(writer=writer._resource, step=step, tag=tag, values=values)
    tf.raw_ops.WriteScalarSummary(writer=writer._resource, step=step, tag="loss", value=loss)
    writer.flush()


for step in run.loop():
    with run.mark(step):
        loss, gradients = train_step(x, y)
        if not run.fixed or step % 100 == 0:
            with run.part("summaries"):
                write_histograms(step, loss, gradients)
