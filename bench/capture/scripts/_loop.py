"""A small training loop for scripts that misbehave in one way each."""

import time

import numpy as np


def _tensorflow_function():
    import tensorflow as tf

    w = tf.Variable(np.full((256, 256), 0.01, "float32"))

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    return tf, train_step


def tensorflow_step():
    tf, train_step = _tensorflow_function()
    x = tf.constant(np.ones((256, 256), "float32"))
    return lambda train_step=train_step: float(train_step(x))


def fed_tensorflow_step():
    """The same, which asks a dataset for its batch."""
    tf, train_step = _tensorflow_function()
    data = tf.data.Dataset.from_tensors(np.ones((256, 256), "float32")).repeat()
    batches = iter(data.prefetch(2))

    def next_batch():
        return next(batches)

    bare_next = getattr(type(batches).__next__, "__wrapped__", None)
    next_batch.past_the_hook = lambda: bare_next(batches)
    return lambda train_step=train_step, next_batch=next_batch: float(train_step(next_batch()))


def jax_step():
    import jax
    import jax.numpy as jnp

    state = [jnp.full((256, 256), 0.01)]
    x = jnp.ones((256, 256))

    @jax.jit
    def train_step(w, x):
        return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)

    def step(train_step=train_step):
        state[0] = train_step(state[0], x)
        return float(state[0][0, 0])

    return step


def train(step, steps, pause=0.02, at=None):
    """Runs steps; `at` maps a step's number to something to do before it."""
    for n in range(steps):
        if at and n in at:
            at[n]()
        step()
        time.sleep(pause)
