"""A small GAN trained eagerly: the step was never wrapped in tf.function.

Planted: every op of the step is dispatched from Python. Fix: `@tf.function`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "eager-ops",
    "also_right": ["tiny-ops"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "@tf.function on train_step",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import tensorflow as tf


def net(sizes):
    return [(tf.Variable(tf.random.normal((m, n), stddev=0.1)), tf.Variable(tf.zeros(n)))
            for m, n in zip(sizes, sizes[1:])]


def forward(layers, x):
    for weight, bias in layers[:-1]:
        x = tf.nn.leaky_relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


generator, critic = net((16, 64, 64, 64, 2)), net((2, 64, 64, 64, 1))
gen_vars = [v for pair in generator for v in pair]
critic_vars = [v for pair in critic for v in pair]
moments = {v.ref(): (tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in gen_vars + critic_vars}


def adam(variables, gradients):
    for variable, gradient in zip(variables, gradients):
        first, second = moments[variable.ref()]
        first.assign(0.9 * first + 0.1 * gradient)
        second.assign(0.99 * second + 0.01 * gradient**2)
        variable.assign_sub(1e-3 * first / (tf.sqrt(second) + 1e-7))


def train_step(real):
    noise = tf.random.normal((64, 16))
    with tf.GradientTape() as tape:
        fake = forward(generator, noise)
        loss = tf.reduce_mean(tf.nn.softplus(forward(critic, fake))) + tf.reduce_mean(
            tf.nn.softplus(-forward(critic, real)))
    adam(critic_vars, tape.gradient(loss, critic_vars))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softplus(-forward(critic, forward(generator, noise))))
    adam(gen_vars, tape.gradient(loss, gen_vars))
    return loss


if run.fixed:
    train_step = tf.function(train_step)
real = tf.random.normal((64, 2))
for i in run.loop():
    with run.mark(i):
        train_step(real).numpy()
