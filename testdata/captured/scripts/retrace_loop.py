"""A tf.function that is retraced in every step: a Python number is passed where a tensor should be."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS = 6
r = np.random.default_rng(9)
x = tf.constant(r.standard_normal((64, 64)).astype('float32'))
w = tf.Variable(r.standard_normal((64, 64)).astype('float32') * .1)


@tf.function(reduce_retracing=False)
def train_step(x, rate):                 # rate is a Python float: a new one means a new graph
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
    w.assign_sub(rate * tape.gradient(loss, w))
    return loss


c = StepClock()
for i in range(4):
    train_step(x, .5 / (i + 1)).numpy()
traced = train_step.experimental_get_tracing_count()
start(tf)
for i in range(STEPS):
    c.tick()
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        with c.part('call_with_tracing'):
            train_step(x, .05 / (i + 1)).numpy()
c.tick()
tf.profiler.experimental.stop()
# what a step costs when nothing is traced
q = StepClock()
for i in range(21):
    q.tick()
    train_step(x, .5).numpy()
plain = q.measured(1)['median_step_ms']
m = c.measured(markers=STEPS, traces=train_step.experimental_get_tracing_count() - traced, plain_step_ms=plain)
m['fraction']['tracing'] = round(1 - plain / m['median_step_ms'], 4)
finish(m)
