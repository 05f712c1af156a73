"""Keras 3 model.fit with the TensorBoard callback; a slow tf.data map that runs one element at a time."""
from _cap import *
import numpy as np, tensorflow as tf, keras
one_thread(tf, 1, 2)
FIRST, STEPS, BATCH = 5, 8, 8
base = tf.constant(np.random.default_rng(3).random((16, 40, 40, 3), dtype='float32'))


def distort(i):
    x = base[i % 16]
    x = tf.image.resize(x, (176, 176), method='bicubic')
    x = tf.image.adjust_gamma(x, 0.8)
    x = tf.image.resize(x, (32, 32), method='area')
    return x, tf.cast(i % 5, tf.int32)


ds = tf.data.Dataset.range(BATCH * (FIRST + STEPS + 4)).map(distort).batch(BATCH, drop_remainder=True)
o = tf.data.Options()
o.autotune.enabled = False
o.experimental_optimization.inject_prefetch = False
o.experimental_optimization.map_and_batch_fusion = False   # the fused form would run elements side by side
o.experimental_optimization.map_parallelization = False
ds = ds.with_options(o)
model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(24, 3, activation='relu'),
                          keras.layers.Conv2D(24, 3, activation='relu'), keras.layers.Flatten(),
                          keras.layers.Dense(5)])
model.compile('sgd', keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Ticks(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.clock = StepClock()

    def on_train_batch_begin(self, batch, logs=None):
        self.clock.tick()


class ProfileOnly(keras.callbacks.TensorBoard):
    """The callback without its scalars, which would need the package tensorboard."""

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, None)

    def on_epoch_end(self, epoch, logs=None):
        pass


t = Ticks()
# the callback starts at batch FIRST (counted from 1) and stops after FIRST + STEPS - 1
board = ProfileOnly(OUT, profile_batch=(FIRST, FIRST + STEPS - 1), write_graph=False)
model.fit(ds, epochs=1, verbose=0, callbacks=[board, t])
m = t.clock.measured(FIRST - 1, FIRST + STEPS - 2)   # the last profiled batch ends with the profiler's stop
# what a step costs without its input: the same model on one fixed batch
fixed = tf.data.Dataset.from_tensors(next(iter(ds))).repeat(24)
t.clock = StepClock()
model.fit(fixed, epochs=1, verbose=0, callbacks=[t])
rest = t.clock.measured(4, 22)['median_step_ms']
m['fraction'] = {'input': round(1 - rest / m['median_step_ms'], 4), 'rest': round(rest / m['median_step_ms'], 4)}
m['note'] = ('%d batches are profiled; the last has no clock time of its own because the profiler stops in it. '
             'Input = step minus the same step on a fixed batch (%.2f ms).' % (STEPS, rest))
m['markers'] = STEPS
finish(m)
