"""A run folder of `strobe run`, with the stacks of Python that it samples.

    strobe run --out OUT --steps 16 -- python run_folder.py

Batches come from a Python generator; each step also writes a log line, as scripts do.
"""
import json, os, time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')
import numpy as np, tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
r = np.random.default_rng(1)


def read_example():
    words = {}
    for i in range(22000):
        words[i % 101] = words.get(i % 101, 0) + i * 7919
    return r.standard_normal((256,)).astype('float32')


def examples():
    while True:
        yield read_example()


def standardize(log):
    values = sorted(log.values())
    for i in range(120000):
        values[i % 8] += i ^ 7
    return values


def write_log(step, loss):
    log = {'step': step, 'loss': loss, 'time': time.time()}
    log.update(('layer_%d' % i, float(i)) for i in range(200))
    standardize(log)
    return len(json.dumps(log, indent=1, sort_keys=True))


with tf.name_scope('model'):
    w = [tf.Variable(r.standard_normal((256, 256)).astype('float32') * .03) for _ in range(3)]


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        h = x
        for at, v in enumerate(w):
            with tf.name_scope('model/dense_%d' % at):
                h = tf.tanh(tf.matmul(h, v))
        with tf.name_scope('loss'):
            loss = tf.reduce_mean(h * h)
    with tf.name_scope('optimizer'):
        for v, g in zip(w, tape.gradient(loss, w)):
            v.assign_sub(1e-3 * g)
    return loss


def main():
    spec = tf.TensorSpec((256,), tf.float32)
    ds = tf.data.Dataset.from_generator(examples, output_signature=spec)
    ds = ds.batch(16).prefetch(1)
    for step, x in enumerate(ds.take(60)):
        loss = train_step(x).numpy()
        write_log(step, float(loss))


main()
