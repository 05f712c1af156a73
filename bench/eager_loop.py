"""An eager TensorFlow loop of thousands of tiny ops a step, under its own profiler.

usage: eager_loop.py FOLDER STEPS; some 20,000 events a step
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf

weights = [tf.Variable(tf.random.normal((8, 8)) * 0.1) for _ in range(4)]


def step():
    with tf.GradientTape() as tape:
        hidden = tf.ones((4, 8)) * 0.5
        for _ in range(60):
            for weight in weights:
                hidden = tf.tanh(hidden @ weight) + hidden * 0.1
        loss = tf.reduce_mean(hidden)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-3 * gradient)
    return loss.numpy()


step()
tf.profiler.experimental.start(sys.argv[1])
for i in range(int(sys.argv[2])):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        step()
tf.profiler.experimental.stop()
os._exit(0)  # TensorFlow may hang at the interpreter's exit
