"""Custom loop that saves a tf.train.Checkpoint of about 20 MB in every fourth step."""
from _cap import *
import tempfile
import numpy as np, tensorflow as tf
one_thread(tf)
STEPS = 12
r = np.random.default_rng(8)
x = tf.constant(r.standard_normal((384, 512)).astype('float32'))
w = tf.Variable(r.standard_normal((512, 512)).astype('float32') * .02)
table = tf.Variable(r.standard_normal((9216, 512)).astype('float32'))      # 18.9 MB
folder = tempfile.mkdtemp()
manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=w, table=table), folder, max_to_keep=1)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.tanh(tf.tanh(x @ w) @ w)))
    w.assign_sub(.01 * tape.gradient(loss, w))
    return loss


c = StepClock()


def step(i):
    with c.part('compute'):
        train_step(x).numpy()
    if i % 4 == 3:
        with c.part('checkpoint'):
            manager.save()


for i in range(8):
    step(i)
start(tf)
for i in range(STEPS):
    c.tick()
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        step(i)
c.tick()
tf.profiler.experimental.stop()
shutil.rmtree(folder, ignore_errors=True)
finish(c.measured(markers=STEPS, saving_steps=[3, 7, 11]))
