"""Keras with its own TensorBoard callback, which profiles some batches itself."""
import sys
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
x, y = np.ones((6400, 32), "float32"), np.ones((6400, 1), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(512), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
board = tf.keras.callbacks.TensorBoard(folder, profile_batch=(20, 60), write_graph=False)
model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[board])
import glob

print(len(glob.glob(folder + "/**/*.xplane.pb", recursive=True)), "profile of its own")
