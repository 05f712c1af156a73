"""Leaves by os._exit while a window is open."""
import os

from _loop import tensorflow_step, train

train(tensorflow_step(), 60, at={55: lambda: os._exit(3)})
