"""60 requests to a small model; every tenth is about ten times as heavy."""
from _cap import *
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS = 60
r = np.random.default_rng(12)
w = [tf.constant(r.standard_normal((320, 320)).astype('float32') * .06) for _ in range(3)]
small = r.standard_normal((1536, 320)).astype('float32')
large = r.standard_normal((15360, 320)).astype('float32')


@tf.function(input_signature=[tf.TensorSpec((None, 320), tf.float32)])
def serve(x):
    for v in w:
        x = tf.nn.relu(x @ v)
    return tf.reduce_sum(x, 1)


c = StepClock()


def request(i):
    heavy = i % 10 == 9
    with c.part('heavy' if heavy else 'normal'):
        serve(large if heavy else small).numpy()


for i in range(10):
    request(i)
start(tf)
for i in range(STEPS):
    c.tick()
    with tf.profiler.experimental.Trace('inference', step_num=i, _r=1):
        request(i)
c.tick()
tf.profiler.experimental.stop()
finish(c.measured(markers=STEPS, heavy_steps=[i for i in range(STEPS) if i % 10 == 9]))
