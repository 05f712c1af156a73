"""Rain forecast from radar patches by a dense network; a day is unbatched, shuffled and batched again. No markers.

Planted: no `prefetch`, and tf.data's autotuning, which would add one, is off; the batch is made in about a third of
the step while the model waits. Fix: `prefetch(tf.data.AUTOTUNE)`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-no-prefetch",
    "also_right": ["input-bound"], "must_name": ["prefetch"], "healthy": False, "kind": "compute",
    "fix": "patches.batch(1024).prefetch(tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=30)
run.marked = False
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.random.set_seed(41)
rng = np.random.default_rng(41)
days = rng.gamma(0.3, 2.0, (40, 1200, 160)).astype("float32")

options = tf.data.Options()
options.autotune.enabled = False
patches = tf.data.Dataset.from_tensor_slices(days).with_options(options).repeat()
patches = patches.unbatch().shuffle(4096, seed=2).batch(1024, drop_remainder=True)
if run.fixed:
    patches = patches.prefetch(tf.data.AUTOTUNE)

sizes = (144, 288, 96, 16)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.08)) for shape in zip(sizes, sizes[1:])]


@tf.function
def train_step(patch):
    past, next_hour = patch[:, :144], patch[:, 144:]
    with tf.GradientTape() as tape:
        hidden = tf.math.log1p(past)
        for weight in weights[:-1]:
            hidden = tf.nn.relu(hidden @ weight)
        loss = tf.reduce_mean(tf.abs(tf.nn.softplus(hidden @ weights[-1]) - next_hour))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-2 * gradient)
    return loss


batches = iter(patches)
for i in run.loop():
    with run.part("input"):
        patch = next(batches)
    train_step(patch).numpy()
