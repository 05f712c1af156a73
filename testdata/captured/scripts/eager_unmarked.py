"""Eager loop: about 150 small ops a step with a GradientTape, no tf.function, no markers."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS, LAYERS = 8, 14
r = np.random.default_rng(4)
x = tf.constant(r.standard_normal((224, 128)).astype('float32'))
w = [tf.Variable(r.standard_normal((128, 128)).astype('float32') * .1) for _ in range(LAYERS)]


def train_step():
    with tf.GradientTape() as tape:
        h = x
        for v in w:
            h = tf.tanh(tf.matmul(h, v)) + h
        loss = tf.reduce_mean(h * h)
    for v, g in zip(w, tape.gradient(loss, w)):
        v.assign_sub(1e-4 * g)
    return loss.numpy()


c = StepClock()
for _ in range(4):
    train_step()
start(tf)
for i in range(STEPS):
    c.tick()
    with c.part('eager'):
        train_step()
c.tick()
tf.profiler.experimental.stop()
finish(c.measured(markers=0))
