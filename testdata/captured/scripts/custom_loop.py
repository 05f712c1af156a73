"""Custom loop: a tf.function step inside Trace('train'), with Python bookkeeping in the step."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS = 8
r = np.random.default_rng(1)
x = tf.constant(r.standard_normal((384, 384)).astype('float32'))
w = [tf.Variable(r.standard_normal((384, 384)).astype('float32') * .03) for _ in range(3)]


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        h = x
        for v in w:
            h = tf.tanh(tf.matmul(h, v))
        loss = tf.reduce_mean(h * h)
    for v, g in zip(w, tape.gradient(loss, w)):
        v.assign_sub(1e-3 * g)
    return loss


c = StepClock()


def step(i):
    with c.part('compute'):
        train_step(x).numpy()
    with c.part('python'):
        python_work(62000)
    with c.part('compute'):
        train_step(x).numpy()


for i in range(5):
    step(i)
start(tf)
for i in range(STEPS):
    c.tick()
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        step(i)
c.tick()
tf.profiler.experimental.stop()
finish(c.measured(markers=STEPS))
