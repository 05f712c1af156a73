"""The loop runs in a thread that is not the main one."""
import threading

from _loop import tensorflow_step, train

thread = threading.Thread(target=lambda: train(tensorflow_step(), 150))
thread.start()
thread.join()
print("done")
