"""Uses the profiler itself from the first step on, and ends it later."""
import glob
import tempfile

import tensorflow as tf

from _loop import tensorflow_step, train

folder = tempfile.mkdtemp()
step = tensorflow_step()
tf.profiler.experimental.start(folder)
train(step, 60)
tf.profiler.experimental.stop()
train(step, 60)
print(len(glob.glob(folder + "/**/*.xplane.pb", recursive=True)), "profile of its own")
