"""Healthy: a dense network in a custom loop, its records shuffled, batched and fetched ahead."""
TRUTH = {"framework": "tensorflow", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
table = rng.standard_normal((16_384, 256)).astype("float32")
target = rng.standard_normal((16_384, 1)).astype("float32")
ds = tf.data.Dataset.from_tensor_slices((table, target)).shuffle(4096).repeat()
ds = ds.batch(256, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
sizes = (256, 1024, 1024, 1024, 1)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.03)) for shape in zip(sizes, sizes[1:])]


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        for weight in weights[:-1]:
            x = tf.nn.relu(x @ weight)
        loss = tf.reduce_mean(tf.square(x @ weights[-1] - y))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


total = tf.Variable(0.0)
batches = iter(ds)
for i in run.loop(sync=total.numpy):
    with run.mark(i):
        with run.part("input"):
            x, y = next(batches)
        total.assign_add(train_step(x, y))
