"""Nothing wrong: every line of output and the exit code are the program's own."""
import sys

from _loop import jax_step, train

train(jax_step(), 60)
print("done")
sys.exit(7)
