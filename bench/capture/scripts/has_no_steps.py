"""Computes without anything that repeats: one long call after the other, none alike."""
import time

import numpy as np
import tensorflow as tf

x = tf.constant(np.ones((512, 512), "float32"))
end = time.monotonic() + 26
while time.monotonic() < end:
    x = tf.tanh(x @ x * 1e-3)
print("done")
