"""Is told to end while a window is open."""
import os
import signal

from _loop import tensorflow_step, train

train(tensorflow_step(), 600, at={55: lambda: os.kill(os.getpid(), signal.SIGTERM)})
print("not reached")
