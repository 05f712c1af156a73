"""Ends while a generator's thread and a daemon thread are alive."""
import threading
import time

import tensorflow as tf

from _loop import tensorflow_step, train

threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()


def numbers():
    while True:
        yield 1.0


data = iter(tf.data.Dataset.from_generator(numbers, output_types=tf.float32).prefetch(4))
step = tensorflow_step()
train(lambda: (next(data), step()), 120)
print("done", flush=True)
