"""A bare loop over a tf.function and .numpy(); nothing marks the steps."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS = 10
r = np.random.default_rng(2)
x = tf.constant(r.standard_normal((1024, 256)).astype('float32'))
w1 = tf.Variable(r.standard_normal((256, 1024)).astype('float32') * .03)
w2 = tf.Variable(r.standard_normal((1024, 16)).astype('float32') * .03)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(x @ w1) @ w2 - 1.))
    g1, g2 = tape.gradient(loss, [w1, w2])
    w1.assign_sub(.01 * g1)
    w2.assign_sub(.01 * g2)
    return loss


c = StepClock()
losses = []
for _ in range(5):
    train_step(x).numpy()
start(tf)
for i in range(STEPS):
    c.tick()
    with c.part('compute'):
        losses.append(train_step(x).numpy())
    with c.part('python'):
        python_work(50000)
c.tick()
tf.profiler.experimental.stop()
finish(c.measured(markers=0))
