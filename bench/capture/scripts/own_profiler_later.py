"""Starts the profiler itself while a window is open."""
import glob
import tempfile

import jax

from _loop import jax_step, train

folder = tempfile.mkdtemp()
train(
    jax_step(),
    90,
    at={40: lambda: jax.profiler.start_trace(folder), 60: jax.profiler.stop_trace},
)
print(len(glob.glob(folder + "/**/*.xplane.pb", recursive=True)), "profile of its own")
