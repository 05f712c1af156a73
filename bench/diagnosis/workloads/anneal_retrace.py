"""A variational autoencoder whose KL weight is annealed; the weight is a Python float, new in each step.

Planted: the tf.function is traced again for every value. Fix: pass it as a tensor.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "train_step(x, tf.constant(beta))",
}
from _driver import Run

run = Run("tensorflow", warm=4, steps=15)
import numpy as np
import tensorflow as tf

images = tf.constant(np.random.default_rng(0).random((128, 784), np.float32))
shapes = ((784, 256), (256, 32), (256, 32), (32, 256), (256, 784))
weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in shapes]


@tf.function
def train_step(x, beta):
    encode, mean, spread, decode, out = weights
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(x @ encode)
        mu, log_var = hidden @ mean, hidden @ spread
        code = mu + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mu))
        logits = tf.nn.relu(code @ decode) @ out
        fit = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(x, logits))
        kl = -0.5 * tf.reduce_mean(1 + log_var - mu**2 - tf.exp(log_var))
        loss = fit + beta * kl
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


for i in run.loop():
    beta = min(1.0, (i + 1) / 5000)
    with run.mark(i):
        train_step(images, tf.constant(beta) if run.fixed else beta).numpy()
