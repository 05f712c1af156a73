"""A training loop of TensorFlow with a profiler server: tf_worker.py PORT"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

tf.profiler.experimental.server.start(int(sys.argv[1]))
x = tf.random.normal((256, 256))
weights = [tf.Variable(tf.random.normal((256, 256), stddev=0.02)) for _ in range(4)]


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        hidden = x
        for weight in weights:
            hidden = tf.nn.relu(hidden @ weight)
        loss = tf.reduce_mean(tf.square(hidden))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss


train_step(x)
print("ready", flush=True)
step = 0
while True:
    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        train_step(x).numpy()
    step += 1
