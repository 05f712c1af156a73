"""Event classification; every event lies in a file of its own, and a step opens hundreds of them.

Planted: many small files. Fix: the same lines packed into one file.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-small-files",
    "also_right": ["input-file-read", "input-bound"], "must_name": ["file"], "healthy": False, "kind": "input",
    "fix": "pack the events into a few large files and read those with one TextLineDataset",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=16)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(6)
lines = [",".join(f"{v:.3f}" for v in rng.standard_normal(16)) for _ in range(1024)]
paths = []
for number, line in enumerate(lines):
    path = run.scratch / f"event-{number:05}.csv"
    path.write_text(line + "\n")
    paths.append(str(path))
packed = run.scratch / "events.csv"
packed.write_text("\n".join(lines) + "\n")

if run.fixed:
    events = tf.data.TextLineDataset(str(packed)).repeat()
else:
    events = tf.data.Dataset.from_tensor_slices(paths).repeat().flat_map(tf.data.TextLineDataset)
events = events.batch(256)
events = events.map(lambda text: tf.stack(tf.io.decode_csv(text, [0.0] * 16), 1), tf.data.AUTOTUNE)
events = events.prefetch(tf.data.AUTOTUNE)

w1 = tf.Variable(tf.random.normal((16, 512), stddev=0.1))
w2 = tf.Variable(tf.random.normal((512, 512), stddev=0.05))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(x @ w1) @ w2))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(0.01 * gradient)
    return loss


batches = iter(events)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            x = next(batches)
        train_step(x).numpy()
