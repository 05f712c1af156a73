"""Healthy: a wide-and-shallow network in a compiled step of a few milliseconds with a batch that fills them; the loop does
nothing else. Markers."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=10, steps=80)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
features = rng.standard_normal((16384, 128)).astype("float32")
target = rng.standard_normal((16384, 1)).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((features, target)).batch(1024, drop_remainder=True)
rows = rows.cache().shuffle(16).repeat().prefetch(tf.data.AUTOTUNE)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in ((128, 512), (512, 128), (128, 1))]
moments = [tf.Variable(tf.zeros_like(weight)) for weight in weights]


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(x @ weights[0])
        hidden = tf.nn.relu(hidden @ weights[1])
        loss = tf.reduce_mean(tf.square(hidden @ weights[2] - y))
    for weight, moment, gradient in zip(weights, moments, tape.gradient(loss, weights)):
        moment.assign(0.9 * moment + gradient)
        weight.assign_sub(0.01 * moment)
    return loss


batches = iter(rows)
for step in run.loop():
    with run.mark(step):
        x, y = next(batches)
        loss = train_step(x, y)
        if step % 20 == 0:
            float(loss)
