"""Input from a Python generator (tf.data from_generator + prefetch) that is slower than the model."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf, 1, 2)
STEPS, BATCH = 8, 4
r = np.random.default_rng(11)


def rows():
    while True:
        d = python_work(60000)
        yield np.full((384,), len(d) * 1e-3, np.float32) + r.standard_normal(384).astype('float32')


ds = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((384,), tf.float32)).batch(BATCH).prefetch(1)
o = tf.data.Options()
o.autotune.enabled = False
it = iter(ds.with_options(o))
w = tf.Variable(r.standard_normal((384, 384)).astype('float32') * .03)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        h = tf.tile(x, (24, 1))
        for _ in range(2):
            h = tf.tanh(h @ w)
        loss = tf.reduce_mean(h * h)
    w.assign_sub(.01 * tape.gradient(loss, w))
    return loss


c = StepClock()


def step():
    with c.part('input'):
        x = next(it)
    with c.part('compute'):
        train_step(x).numpy()


for _ in range(5):
    step()
start(tf)
for i in range(STEPS):
    c.tick()
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        step()
c.tick()
tf.profiler.experimental.stop()
finish(c.measured(markers=STEPS))
