"""Prints bytes that are no text."""
import sys

from _loop import jax_step, train

sys.stdout.buffer.write(bytes(range(256)) * 64)
train(jax_step(), 60)
sys.stdout.buffer.write(b"\x00\xff\xfe no newline at the end")
