"""A detector whose predicted boxes are filtered in NumPy after every step, inside the step; about a third of it.

Planted: non-maximum suppression in a Python loop, for a metric. Fix: `tf.image.non_max_suppression`, every 10th step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "tf.image.non_max_suppression every 10th step instead of the Python loop in each",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(15)
frames = tf.constant(rng.random((8, 64, 64, 3)), tf.float32)
kernels = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in
           ((3, 3, 3, 32), (3, 3, 32, 48), (3, 3, 48, 48), (1, 1, 48, 5))]


@tf.function
def train_step(frames):
    with tf.GradientTape() as tape:
        hidden = frames
        for kernel in kernels[:-1]:
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "SAME"))
        predicted = tf.nn.conv2d(hidden, kernels[-1], 4, "SAME")
        loss = tf.reduce_mean(tf.square(predicted))
    for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
        kernel.assign_sub(1e-3 * gradient)
    return loss, tf.reshape(predicted, (-1, 5))


def suppress(boxes, scores, limit=0.5):
    order, kept = np.argsort(-scores), []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(best)
        top = np.maximum(boxes[best, :2], boxes[rest, :2])
        low = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        overlap = np.prod(np.clip(low - top, 0, None), axis=1)
        area = np.prod(boxes[best, 2:] - boxes[best, :2]) + np.prod(boxes[rest, 2:] - boxes[rest, :2], axis=1)
        order = rest[overlap / (area - overlap + 1e-9) < limit]
    return kept


for i in run.loop():
    with run.mark(i):
        loss, predicted = train_step(frames)
        loss.numpy()
        if not run.fixed or i % 10 == 0:
            with run.part("python"):
                predicted = predicted.numpy()[:480]
                corner = np.abs(predicted[:, :2]) * 40
                boxes = np.concatenate([corner, corner + 0.02], 1)
                suppress(boxes, predicted[:, 4]) if not run.fixed else tf.image.non_max_suppression(
                    boxes.astype("float32"), predicted[:, 4], 100)
