"""A custom loop with two causes: metrics in Python after each step (the larger), and a serial map (the smaller).

Planted: scikit-like metrics over a growing buffer, about twice as long as the wait for input.
Fix, of the first only: metrics every 20th step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "second": "input-serial-map", "must_name": [], "healthy": False, "kind": "python",
    "fix": "if step % 20 == 0: area_under_curve(...)",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(21)
images = rng.integers(0, 255, (128, 64, 64, 3), dtype=np.uint8)
labels = rng.integers(0, 2, 128).astype("float32")


def jitter(image, label):
    image = tf.image.random_hue(tf.image.convert_image_dtype(image, tf.float32), 0.1)
    return tf.image.resize(image, (32, 32)), label


options = tf.data.Options()
options.autotune.enabled = False
ds = tf.data.Dataset.from_tensor_slices((images, labels)).with_options(options).repeat().map(jitter).batch(32)
kernel = tf.Variable(tf.random.normal((3, 3, 3, 16), stddev=0.1))
head = tf.Variable(tf.random.normal((16, 1), stddev=0.1))


@tf.function
def train_step(image, label):
    with tf.GradientTape() as tape:
        hidden = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, kernel, 2, "SAME")), (1, 2))
        score = tf.squeeze(hidden @ head, 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, score))
    for variable, gradient in zip((kernel, head), tape.gradient(loss, (kernel, head))):
        variable.assign_sub(0.01 * gradient)
    return loss, score


def area_under_curve(scores, labels):
    good, bad = scores[labels > 0.5], scores[labels <= 0.5]
    return sum(float(np.mean(value > bad)) for value in good) / max(1, len(good))


scores, truth = [], []
batches = iter(ds)
for step in run.loop():
    with run.mark(step):
        with run.part("input"):
            image, label = next(batches)
        loss, score = train_step(image, label)
        scores.extend(score.numpy())
        truth.extend(label.numpy())
        if not run.fixed or step % 20 == 0:
            with run.part("python"):
                padded = np.resize(np.array(scores), 2400), np.resize(np.array(truth), 2400)
                area_under_curve(*padded)
