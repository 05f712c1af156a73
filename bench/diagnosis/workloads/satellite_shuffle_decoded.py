"""Land-cover patches. Every round takes ten batches from a freshly shuffled dataset, as active-learning scripts do;
the shuffle comes after the decoding and its buffer is far larger than what a round uses.

Planted: at the start of each round 1,500 patches are decoded to fill the buffer, and most are thrown away.
Fix: shuffle the encoded patches, before the map.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-bound",
    "also_right": ["input-cpu-starved", "step-outliers"], "same_fix": [], "must_name": ["huffle"], "healthy": False,
    "kind": "input", "fix": "patches.shuffle(1500).map(decode) instead of patches.map(decode).shuffle(1500)",
}
from _driver import Run

run = Run("tensorflow", warm=10, steps=40)
import numpy as np
import tensorflow as tf

ROUND, BATCH = 10, 24
rng = np.random.default_rng(2)
pngs = [tf.io.encode_png(rng.integers(0, 64, (64, 64, 3), dtype=np.uint8)).numpy() for _ in range(150)] * 10
cover = rng.integers(0, 8, 1500).astype("int32")


def decode(png, label):
    patch = tf.io.decode_png(png, channels=3)
    return tf.ensure_shape(tf.cast(patch, tf.float32) / 64.0, (64, 64, 3)), label


patches = tf.data.Dataset.from_tensor_slices((pngs, cover))
if run.fixed:
    patches = patches.shuffle(1500).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
else:
    patches = patches.map(decode, num_parallel_calls=tf.data.AUTOTUNE).shuffle(1500)
patches = patches.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE).take(ROUND)

filters = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in ((3, 3, 3, 16), (3, 3, 16, 32))]
head = tf.Variable(tf.random.normal((32, 8), stddev=0.1))
weights = filters + [head]


@tf.function
def train_step(image, label):
    with tf.GradientTape() as tape:
        x = image
        for kernel in filters:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME"))
        logits = tf.reduce_mean(x, (1, 2)) @ head
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.05 * gradient)
    return loss


for step in run.loop():
    with run.mark(step):
        with run.part("input"):
            if step % ROUND == 0:
                batches = iter(patches)
            image, label = next(batches)
        loss = train_step(image, label)
