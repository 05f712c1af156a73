"""Mean-teacher training: the student's step is a tf.function, but the teacher's moving average is taken after it,
variable by variable, in eager mode.

Planted: 60 variables, three eager ops each. Fix: @tf.function on update_teacher.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops", "python-overhead"], "must_name": [],
    "healthy": False, "kind": "runtime", "fix": "@tf.function on update_teacher",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=40)
import numpy as np
import tensorflow as tf
import keras
from keras import layers


def network():
    inputs = keras.Input((32,))
    x = layers.Dense(64)(inputs)
    for _ in range(14):
        y = layers.Dense(64, activation="relu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, y])
    return keras.Model(inputs, layers.Dense(8)(x))


rng = np.random.default_rng(0)
student, teacher = network(), network()
teacher.set_weights(student.get_weights())
optimizer = keras.optimizers.SGD(0.01)
x = tf.constant(rng.standard_normal((128, 32)), tf.float32)
labels = tf.constant(rng.integers(0, 8, 128), tf.int32)


@tf.function
def train_step(x, labels):
    goal = tf.nn.softmax(teacher(x, training=False))
    with tf.GradientTape() as tape:
        logits = student(x + tf.random.normal(tf.shape(x), stddev=0.1), training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        loss += tf.reduce_mean(tf.square(tf.nn.softmax(logits) - goal))
    gradients = tape.gradient(loss, student.trainable_variables)
    optimizer.apply_gradients(zip(gradients, student.trainable_variables))
    return loss


def update_teacher(decay):
    for slow, fast in zip(teacher.trainable_variables, student.trainable_variables):
        slow.assign(decay * slow + (1.0 - decay) * fast)


if run.fixed:
    update_teacher = tf.function(update_teacher)

for step in run.loop():
    with run.mark(step):
        loss = train_step(x, labels)
        with run.part("teacher"):
            update_teacher(0.99)
