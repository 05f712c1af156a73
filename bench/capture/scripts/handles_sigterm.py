"""Handles SIGTERM itself, as programs do that save a checkpoint, and ends with its own code."""
import os
import signal
import sys

from _loop import jax_step, train


def save(number, frame):
    print("saved", flush=True)
    sys.exit(5)


signal.signal(signal.SIGTERM, save)
train(jax_step(), 600, at={60: lambda: os.kill(os.getpid(), signal.SIGTERM)})
