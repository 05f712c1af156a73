"""Raises while a window is open."""
from _loop import tensorflow_step, train


def fail():
    raise ValueError("the loss is not a number")


train(tensorflow_step(), 60, at={55: fail})
