"""Traffic forecast on a road network by message passing, in tf.Module layers and a tape, never wrapped in tf.function.

Planted: every op of the step is dispatched from Python. Fix: `@tf.function`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "eager-ops",
    "also_right": ["tiny-ops"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "@tf.function on train_step",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=30)
import numpy as np
import tensorflow as tf

tf.random.set_seed(91)
rng = np.random.default_rng(91)
ROADS, LINKS, WIDTH = 500, 2500, 32
source = tf.constant(rng.integers(0, ROADS, LINKS), tf.int32)
sink = tf.constant(np.sort(rng.integers(0, ROADS, LINKS)), tf.int32)
speeds = tf.constant(rng.standard_normal((ROADS, 12)), tf.float32)
later = tf.constant(rng.standard_normal((ROADS, 1)), tf.float32)


class Dense(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((inputs, outputs), stddev=inputs**-0.5))
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return x @ self.weight + self.bias


class Exchange(tf.Module):
    """Messages along the links, then a gated update of the roads."""

    def __init__(self):
        super().__init__()
        self.message, self.gate, self.update = Dense(2 * WIDTH, WIDTH), Dense(2 * WIDTH, WIDTH), Dense(2 * WIDTH, WIDTH)

    def __call__(self, roads):
        ends = tf.concat([tf.gather(roads, source), tf.gather(roads, sink)], axis=1)
        heard = tf.math.unsorted_segment_mean(tf.nn.relu(self.message(ends)), sink, ROADS)
        both = tf.concat([roads, heard], axis=1)
        gate = tf.sigmoid(self.gate(both))
        return gate * roads + (1 - gate) * tf.tanh(self.update(both))


class Forecast(tf.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rounds, self.read = Dense(12, WIDTH), [Exchange() for _ in range(3)], Dense(WIDTH, 1)

    def __call__(self, speeds):
        roads = tf.tanh(self.embed(speeds))
        for exchange in self.rounds:
            roads = exchange(roads)
        return self.read(roads)


model = Forecast()


def train_step(speeds, later):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.abs(model(speeds) - later))
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


if run.fixed:
    train_step = tf.function(train_step)
for i in run.loop():
    with run.mark(i):
        train_step(speeds, later).numpy()
