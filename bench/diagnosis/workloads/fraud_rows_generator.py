"""Fraud detection on transactions; a Python generator builds every feature row, `from_generator` feeds them.

Planted: rows are made in Python, one at a time. Fix: encode the columns once with NumPy and feed the arrays.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": ["Generator"], "healthy": False, "kind": "input",
    "fix": "tf.data.Dataset.from_tensor_slices(encode_columns(transactions)) instead of from_generator",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
COUNTRIES = ["de", "fr", "us", "br", "jp", "in"]
transactions = [
    {"amount": float(a), "country": COUNTRIES[c], "hour": int(h), "history": hist.tolist()}
    for a, c, h, hist in zip(rng.gamma(2, 50, 6000), rng.integers(0, 6, 6000), rng.integers(0, 24, 6000),
                             rng.random((6000, 40)))
]


def encode(row):
    country = [1.0 if row["country"] == it else 0.0 for it in COUNTRIES]
    hour = [1.0 if row["hour"] == it else 0.0 for it in range(24)]
    mean = sum(row["history"]) / len(row["history"])
    spread = sum((it - mean) ** 2 for it in row["history"])
    return [row["amount"] / 100, mean, spread] + country + hour + row["history"]


def rows():
    while True:
        for row in transactions:
            yield np.array(encode(row), np.float32), np.float32(row["amount"] > 300)


if run.fixed:
    features = np.array([encode(row) for row in transactions], np.float32)
    target = np.array([row["amount"] > 300 for row in transactions], np.float32)
    feed = tf.data.Dataset.from_tensor_slices((features, target)).repeat()
else:
    feed = tf.data.Dataset.from_generator(rows, output_signature=(
        tf.TensorSpec((73,), tf.float32), tf.TensorSpec((), tf.float32)))
feed = feed.batch(128).prefetch(tf.data.AUTOTUNE)

w1 = tf.Variable(tf.random.normal((73, 256), stddev=0.1))
w2 = tf.Variable(tf.random.normal((256, 1), stddev=0.1))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(x @ w1) @ w2
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y[:, None], logits))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(0.01 * gradient)
    return loss


batches = iter(feed)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            x, y = next(batches)
        train_step(x, y).numpy()
