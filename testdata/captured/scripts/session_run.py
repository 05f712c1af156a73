"""TensorFlow 1 style: a graph and a Session.run loop, nothing marked."""
from _cap import *
import numpy as np, tensorflow as tf
tf1 = tf.compat.v1
STEPS = 10
r = np.random.default_rng(7)
g = tf1.Graph()
with g.as_default():
    x = tf1.placeholder(tf.float32, (512, 512), name='x')
    w = tf1.get_variable('w', initializer=r.standard_normal((512, 512)).astype('float32') * .02, use_resource=True)
    h = tf.tanh(tf.matmul(x, w))
    loss = tf.reduce_mean(tf.square(tf.matmul(h, w)), name='loss')
    train = tf1.train.GradientDescentOptimizer(.01).minimize(loss)
    init = tf1.global_variables_initializer()
feeds = [r.standard_normal((512, 512)).astype('float32') for _ in range(3)]
c = StepClock()
config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
with tf1.Session(graph=g, config=config) as s:
    s.run(init)
    for i in range(5):
        s.run([train, loss], {x: feeds[i % 3]})
    start(tf)
    for i in range(STEPS):
        c.tick()
        with c.part('python'):
            python_work(12000)
        with c.part('run'):
            s.run([train, loss], {x: feeds[i % 3]})
    c.tick()
    tf.profiler.experimental.stop()
finish(c.measured(markers=0))
